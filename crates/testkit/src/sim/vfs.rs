//! SQLite over simulated disks: its files below a mounted directory are a disk's, all others are the system's.
//!
//! It makes itself SQLite's default, because whoever opens a database by its path must not have to know of it.
//!
//! Invariant: what a process that was killed still does reaches no disk and holds no lock.
#![allow(unsafe_code, reason = "SQLite asks for its files through pointers; each block says why it may")]

use std::collections::HashMap;
use std::ffi::{CStr, c_char, c_int, c_void};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, Once, PoisonError};

use rusqlite::ffi;

use super::Disk;
use super::disk::Failed;
use super::locks::{FileLocks, Holder, Region};

/// A disk at a directory, for one process. The directory itself need not be empty; only what SQLite opens in it is on
/// the disk.
#[derive(Debug)]
pub struct Mount {
    dir: PathBuf,
}

impl Mount {
    /// Several mounts of one disk are several processes of one machine.
    pub fn new(disk: &Disk, dir: &Path) -> Self {
        register();
        mounts().insert(dir.to_owned(), Mounted { disk: disk.clone(), alive: true });
        Self { dir: dir.to_owned() }
    }

    /// As the end of a process: its locks are free, and nothing it still does is done.
    pub fn kill(&self) {
        if let Some(mounted) = mounts().get_mut(&self.dir) {
            mounted.alive = false;
            mounted.disk.forget_locks(|holder| holder.dir == self.dir);
        }
    }

    /// Brings all of a database's log into its file, as a process of its own would.
    pub fn checkpoint(&self, name: &str) -> rusqlite::Result<()> {
        let db = rusqlite::Connection::open(self.dir.join(name))?;
        db.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))
    }

    /// From now on whoever opens the database keeps no more than this many of its pages in memory while it writes.
    pub fn give_little_memory(&self, name: &str, pages: u32) -> rusqlite::Result<()> {
        let db = rusqlite::Connection::open(self.dir.join(name))?;
        db.pragma_update(None, "default_cache_size", pages)
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        self.kill();
        mounts().remove(&self.dir);
    }
}

#[derive(Clone)]
struct Mounted {
    disk: Disk,
    alive: bool,
}

/// What SQLite keeps of an open file; it gives the memory.
#[repr(C)]
struct Handle {
    base: ffi::sqlite3_file,
    open: *mut Open,
}

struct Open {
    holder: Holder,
    name: String,
    disk: Disk,
    /// Kept as long as SQLite may have their addresses.
    regions: Vec<Arc<Region>>,
}

impl Open {
    fn is_alive(&self) -> bool {
        mounts().get(&self.holder.dir).is_some_and(|mounted| mounted.alive)
    }

    fn with_locks<T>(&self, work: impl FnOnce(&mut FileLocks) -> T) -> T {
        self.disk.with_locks(&self.name, work)
    }
}

static MOUNTS: LazyLock<Mutex<HashMap<PathBuf, Mounted>>> = LazyLock::new(Mutex::default);
static HANDLES: AtomicU64 = AtomicU64::new(0);

fn mounts() -> MutexGuard<'static, HashMap<PathBuf, Mounted>> {
    MOUNTS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The disk that has the file, and the file's name on it.
fn find(path: &Path) -> Option<(PathBuf, String, Mounted)> {
    let dir = path.parent()?;
    let mounted = mounts().get(dir).cloned()?;
    Some((dir.to_owned(), path.file_name()?.to_str()?.to_owned(), mounted))
}

/// # Safety
///
/// `name` is null or a text that ends with 0, as SQLite's names do.
unsafe fn find_named(name: *const c_char) -> Option<(PathBuf, String, Mounted)> {
    if name.is_null() {
        return None;
    }
    // SAFETY: see above.
    let name = unsafe { CStr::from_ptr(name) };
    find(Path::new(name.to_str().ok()?))
}

/// The system's own, which had been the default.
struct System(*mut ffi::sqlite3_vfs);
// SAFETY: it is static, and SQLite itself uses it from any thread.
unsafe impl Send for System {}
// SAFETY: as above.
unsafe impl Sync for System {}

static SYSTEM: LazyLock<System> = LazyLock::new(|| {
    // SAFETY: null asks for the default, which is there once SQLite is initialized.
    System(unsafe {
        ffi::sqlite3_initialize();
        ffi::sqlite3_vfs_find(std::ptr::null())
    })
});

/// What a function of the system's is called with in place of ours.
fn system() -> (*mut ffi::sqlite3_vfs, &'static ffi::sqlite3_vfs) {
    // SAFETY: it is static; SQLite has at least one.
    (SYSTEM.0, unsafe { &*SYSTEM.0 })
}

fn register() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let (_, system) = system();
        let size = size_of::<Handle>().max(usize::try_from(system.szOsFile).unwrap_or(0));
        let ours = ffi::sqlite3_vfs {
            szOsFile: c_int::try_from(size).unwrap_or(c_int::MAX),
            pNext: std::ptr::null_mut(),
            zName: c"simulated".as_ptr(),
            xOpen: Some(open),
            xDelete: Some(delete),
            xAccess: Some(access),
            xFullPathname: Some(full_pathname),
            // Everything else, such as time and randomness, is the system's and takes no notice of who asks.
            ..*system
        };
        // SAFETY: SQLite keeps the address for ever, and so do we.
        unsafe { ffi::sqlite3_vfs_register(Box::leak(Box::new(ours)), 1) };
    });
}

unsafe extern "C" fn open(
    _: *mut ffi::sqlite3_vfs,
    name: ffi::sqlite3_filename,
    file: *mut ffi::sqlite3_file,
    flags: c_int,
    out: *mut c_int,
) -> c_int {
    // SAFETY: a name of SQLite's; the file has room for the larger of both kinds of handles, and is ours until closed.
    unsafe {
        let Some((dir, name, mounted)) = find_named(name) else {
            let (address, system) = system();
            return system.xOpen.map_or(ffi::SQLITE_CANTOPEN, |open| open(address, name, file, flags, out));
        };
        (*file).pMethods = std::ptr::null();
        let may_create = flags & ffi::SQLITE_OPEN_CREATE != 0;
        let is_there = mounted.disk.exists(&name) || (may_create && mounted.disk.create(&name).is_ok());
        if !mounted.alive || !is_there {
            return ffi::SQLITE_CANTOPEN;
        }
        let holder = Holder { dir, n: HANDLES.fetch_add(1, Ordering::Relaxed) };
        let open = Open { holder, name, disk: mounted.disk, regions: Vec::new() };
        let handle =
            Handle { base: ffi::sqlite3_file { pMethods: &METHODS }, open: Box::into_raw(Box::new(open)) };
        file.cast::<Handle>().write(handle);
        if !out.is_null() {
            *out = flags;
        }
        ffi::SQLITE_OK
    }
}

unsafe extern "C" fn delete(_: *mut ffi::sqlite3_vfs, name: *const c_char, sync: c_int) -> c_int {
    // SAFETY: a name of SQLite's.
    unsafe {
        match find_named(name) {
            None => {
                let (address, system) = system();
                system.xDelete.map_or(ffi::SQLITE_IOERR_DELETE, |delete| delete(address, name, sync))
            }
            Some((_, name, mounted)) if !mounted.alive || mounted.disk.remove(&name).is_err() => {
                ffi::SQLITE_IOERR_DELETE_NOENT
            }
            Some(_) => ffi::SQLITE_OK,
        }
    }
}

unsafe extern "C" fn access(
    _: *mut ffi::sqlite3_vfs,
    name: *const c_char,
    flags: c_int,
    out: *mut c_int,
) -> c_int {
    // SAFETY: a name of SQLite's, and a place for the answer.
    unsafe {
        match find_named(name) {
            None => {
                let (address, system) = system();
                system.xAccess.map_or(ffi::SQLITE_IOERR_ACCESS, |access| access(address, name, flags, out))
            }
            Some((_, name, mounted)) => {
                *out = c_int::from(mounted.disk.exists(&name));
                ffi::SQLITE_OK
            }
        }
    }
}

unsafe extern "C" fn full_pathname(
    _: *mut ffi::sqlite3_vfs,
    name: *const c_char,
    room: c_int,
    out: *mut c_char,
) -> c_int {
    // SAFETY: a name of SQLite's, and `room` bytes for the answer.
    unsafe {
        if find_named(name).is_none() {
            let (address, system) = system();
            return system.xFullPathname.map_or(ffi::SQLITE_CANTOPEN, |full| full(address, name, room, out));
        }
        let name = CStr::from_ptr(name).to_bytes_with_nul();
        if name.len() > usize::try_from(room).unwrap_or(0) {
            return ffi::SQLITE_CANTOPEN;
        }
        std::ptr::copy_nonoverlapping(name.as_ptr().cast(), out, name.len());
        ffi::SQLITE_OK
    }
}

static METHODS: ffi::sqlite3_io_methods = ffi::sqlite3_io_methods {
    iVersion: 2,
    xClose: Some(close),
    xRead: Some(read),
    xWrite: Some(write),
    xTruncate: Some(truncate),
    xSync: Some(sync),
    xFileSize: Some(file_size),
    xLock: Some(lock_file),
    xUnlock: Some(unlock_file),
    xCheckReservedLock: Some(check_reserved),
    xFileControl: Some(file_control),
    xSectorSize: Some(sector_size),
    xDeviceCharacteristics: Some(characteristics),
    xShmMap: Some(shm_map),
    xShmLock: Some(shm_lock),
    xShmBarrier: Some(shm_barrier),
    xShmUnmap: Some(shm_unmap),
    xFetch: None,
    xUnfetch: None,
};

/// # Safety
///
/// `file` was opened by [`open`] on a disk and is not closed yet; SQLite uses it from one thread at a time.
unsafe fn opened<'a>(file: *mut ffi::sqlite3_file) -> &'a mut Open {
    // SAFETY: see above.
    unsafe { &mut *(*file.cast::<Handle>()).open }
}

fn code(done: Result<(), Failed>, broken: c_int) -> c_int {
    match done {
        Ok(()) => ffi::SQLITE_OK,
        Err(Failed::Full) => ffi::SQLITE_FULL,
        Err(Failed::Broken) => broken,
    }
}

fn size(number: impl TryInto<usize>) -> usize {
    number.try_into().unwrap_or(0)
}

unsafe extern "C" fn close(file: *mut ffi::sqlite3_file) -> c_int {
    // SAFETY: the last use of it.
    let open = unsafe { Box::from_raw((*file.cast::<Handle>()).open) };
    open.with_locks(|locks| locks.forget(&|holder| *holder == open.holder));
    ffi::SQLITE_OK
}

unsafe extern "C" fn read(file: *mut ffi::sqlite3_file, into: *mut c_void, amount: c_int, at: i64) -> c_int {
    // SAFETY: an open file, and `amount` bytes of room.
    let (open, into) =
        unsafe { (opened(file), std::slice::from_raw_parts_mut(into.cast::<u8>(), size(amount))) };
    into.fill(0);
    if !open.is_alive() {
        return ffi::SQLITE_IOERR_READ;
    }
    match open.disk.read(&open.name, size(at), into) {
        Ok(read) if read == into.len() => ffi::SQLITE_OK,
        Ok(_) => ffi::SQLITE_IOERR_SHORT_READ,
        Err(_) => ffi::SQLITE_IOERR_READ,
    }
}

unsafe extern "C" fn write(
    file: *mut ffi::sqlite3_file,
    from: *const c_void,
    amount: c_int,
    at: i64,
) -> c_int {
    // SAFETY: an open file, and `amount` bytes.
    let (open, from) = unsafe { (opened(file), std::slice::from_raw_parts(from.cast::<u8>(), size(amount))) };
    if !open.is_alive() {
        return ffi::SQLITE_IOERR_WRITE;
    }
    code(open.disk.write(&open.name, size(at), from), ffi::SQLITE_IOERR_WRITE)
}

unsafe extern "C" fn truncate(file: *mut ffi::sqlite3_file, len: i64) -> c_int {
    // SAFETY: an open file.
    let open = unsafe { opened(file) };
    if !open.is_alive() {
        return ffi::SQLITE_IOERR_TRUNCATE;
    }
    code(open.disk.resize(&open.name, size(len)), ffi::SQLITE_IOERR_TRUNCATE)
}

unsafe extern "C" fn sync(file: *mut ffi::sqlite3_file, _: c_int) -> c_int {
    // SAFETY: an open file.
    let open = unsafe { opened(file) };
    if !open.is_alive() {
        return ffi::SQLITE_IOERR_FSYNC;
    }
    code(open.disk.sync(&open.name), ffi::SQLITE_IOERR_FSYNC)
}

unsafe extern "C" fn file_size(file: *mut ffi::sqlite3_file, out: *mut i64) -> c_int {
    // SAFETY: an open file, and a place for the answer.
    unsafe {
        let open = opened(file);
        *out = i64::try_from(open.disk.len(&open.name)).unwrap_or(i64::MAX);
    }
    ffi::SQLITE_OK
}

unsafe extern "C" fn lock_file(file: *mut ffi::sqlite3_file, wanted: c_int) -> c_int {
    // SAFETY: an open file.
    let open = unsafe { opened(file) };
    if !open.is_alive() {
        return ffi::SQLITE_IOERR_LOCK;
    }
    let raised = open.with_locks(|locks| locks.raise(&open.holder, wanted));
    if raised { ffi::SQLITE_OK } else { ffi::SQLITE_BUSY }
}

unsafe extern "C" fn unlock_file(file: *mut ffi::sqlite3_file, level: c_int) -> c_int {
    // SAFETY: an open file.
    let open = unsafe { opened(file) };
    open.with_locks(|locks| locks.lower(&open.holder, level));
    ffi::SQLITE_OK
}

unsafe extern "C" fn check_reserved(file: *mut ffi::sqlite3_file, out: *mut c_int) -> c_int {
    // SAFETY: an open file, and a place for the answer.
    unsafe {
        *out = c_int::from(opened(file).with_locks(|locks| locks.is_reserved()));
    }
    ffi::SQLITE_OK
}

unsafe extern "C" fn file_control(_: *mut ffi::sqlite3_file, _: c_int, _: *mut c_void) -> c_int {
    ffi::SQLITE_NOTFOUND
}

unsafe extern "C" fn sector_size(_: *mut ffi::sqlite3_file) -> c_int {
    4096
}

/// What SQLite takes for granted on Linux: a write leaves alone what is beside it.
unsafe extern "C" fn characteristics(_: *mut ffi::sqlite3_file) -> c_int {
    ffi::SQLITE_IOCAP_POWERSAFE_OVERWRITE
}

unsafe extern "C" fn shm_map(
    file: *mut ffi::sqlite3_file,
    n: c_int,
    bytes: c_int,
    extend: c_int,
    out: *mut *mut c_void,
) -> c_int {
    // SAFETY: an open file, and a place for the answer.
    unsafe {
        let open = opened(file);
        *out = std::ptr::null_mut();
        if !open.is_alive() {
            return ffi::SQLITE_IOERR_SHMMAP;
        }
        let (holder, extend) = (open.holder.clone(), extend != 0);
        let region = open.with_locks(|locks| locks.map(holder, size(n), size(bytes), extend));
        if let Some(region) = region {
            *out = region.address();
            open.regions.push(region);
        }
    }
    ffi::SQLITE_OK
}

unsafe extern "C" fn shm_lock(
    file: *mut ffi::sqlite3_file,
    first: c_int,
    count: c_int,
    flags: c_int,
) -> c_int {
    // SAFETY: an open file.
    let open = unsafe { opened(file) };
    let unlocks = flags & ffi::SQLITE_SHM_UNLOCK != 0;
    if !open.is_alive() && !unlocks {
        return ffi::SQLITE_IOERR_SHMLOCK;
    }
    let slots = size(first)..size(first) + size(count);
    let exclusive = flags & ffi::SQLITE_SHM_EXCLUSIVE != 0;
    let done = open.with_locks(|locks| match unlocks {
        true => locks.let_go(&open.holder, slots),
        false => locks.take(&open.holder, slots, exclusive),
    });
    if done { ffi::SQLITE_OK } else { ffi::SQLITE_BUSY }
}

unsafe extern "C" fn shm_barrier(_: *mut ffi::sqlite3_file) {
    std::sync::atomic::fence(Ordering::SeqCst);
}

unsafe extern "C" fn shm_unmap(file: *mut ffi::sqlite3_file, delete: c_int) -> c_int {
    // SAFETY: an open file, whose memory SQLite will not use any more.
    let open = unsafe { opened(file) };
    open.with_locks(|locks| locks.unmap(&open.holder, delete != 0));
    open.regions.clear();
    ffi::SQLITE_OK
}
