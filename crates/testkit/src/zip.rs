//! Zip archives for tests, honest ones and such as nobody honest would make.
//!
//! Invariant: what is written is what was asked for, however wrong.

use std::io::Write as _;

use flate2::Compression;
use flate2::write::DeflateEncoder;

/// An archive in the making.
///
/// ```
/// use hart_testkit::zip::Zip;
///
/// let bytes = Zip::new().file("SKILL.md", "---\nname: a\ndescription: b\n---\n").finish();
/// assert!(bytes.starts_with(b"PK\x03\x04"));
/// ```
#[derive(Clone, Debug, Default)]
pub struct Zip {
    bytes: Vec<u8>,
    index: Vec<u8>,
    count: u32,
}

/// One entry, to be changed before it is added.
#[derive(Clone, Debug)]
pub struct ZipEntry {
    pub name: Vec<u8>,
    /// In the header before the data, where it differs.
    pub local_name: Option<Vec<u8>>,
    pub content: Vec<u8>,
    /// The Unix mode with the kind of file.
    pub mode: u32,
    pub deflate: bool,
    pub flags: u16,
    /// The size that is declared, where it differs.
    pub declared: Option<u32>,
    pub crc: Option<u32>,
}

impl ZipEntry {
    #[must_use]
    pub fn new(name: impl AsRef<[u8]>, content: impl AsRef<[u8]>) -> Self {
        Self {
            name: name.as_ref().to_vec(),
            local_name: None,
            content: content.as_ref().to_vec(),
            mode: 0o100_644,
            deflate: true,
            flags: 0x800,
            declared: None,
            crc: None,
        }
    }

    #[must_use]
    pub fn mode(mut self, mode: u32) -> Self {
        self.mode = mode;
        self
    }
}

impl Zip {
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    #[must_use]
    pub fn file(self, name: &str, content: impl AsRef<[u8]>) -> Self {
        self.entry(&ZipEntry::new(name, content))
    }

    /// A script.
    #[must_use]
    pub fn script(self, name: &str, content: impl AsRef<[u8]>) -> Self {
        self.entry(&ZipEntry::new(name, content).mode(0o100_755))
    }

    /// # Panics
    /// When memory cannot be written to.
    #[must_use]
    pub fn entry(mut self, entry: &ZipEntry) -> Self {
        let from = self.bytes.len() as u32;
        let mut sum = flate2::Crc::new();
        sum.update(&entry.content);
        let crc = entry.crc.unwrap_or(sum.sum());
        let data = if entry.deflate {
            let mut encoder = DeflateEncoder::new(Vec::new(), Compression::best());
            encoder.write_all(&entry.content).expect("memory");
            encoder.finish().expect("memory")
        } else {
            entry.content.clone()
        };
        let method: u16 = if entry.deflate { 8 } else { 0 };
        let size = entry.declared.unwrap_or(entry.content.len() as u32);
        let local_name = entry.local_name.as_ref().unwrap_or(&entry.name);
        let common = |name: &[u8]| {
            let mut out = Vec::new();
            for word in [20_u16, entry.flags, method, 0, 0x21] {
                out.extend(word.to_le_bytes());
            }
            for word in [crc, data.len() as u32, size] {
                out.extend(word.to_le_bytes());
            }
            out.extend((name.len() as u16).to_le_bytes());
            out.extend(0_u16.to_le_bytes());
            out
        };
        self.bytes.extend(b"PK\x03\x04");
        self.bytes.extend(common(local_name));
        self.bytes.extend(local_name);
        self.bytes.extend(&data);
        self.index.extend(b"PK\x01\x02");
        self.index.extend((3_u16 << 8 | 20).to_le_bytes());
        self.index.extend(common(&entry.name));
        self.index.extend([0; 6]);
        self.index.extend((entry.mode << 16).to_le_bytes());
        self.index.extend(from.to_le_bytes());
        self.index.extend(&entry.name);
        self.count += 1;
        self
    }

    /// The last entry of the index again, so that two entries share their bytes.
    #[must_use]
    pub fn overlapping(mut self, name: &[u8]) -> Self {
        let last = self.index.windows(4).rposition(|mark| mark == b"PK\x01\x02").unwrap_or(0);
        let mut again = self.index.split_off(last);
        self.index.extend(&again);
        let length = again.len();
        again.splice(length - name.len().., name.iter().copied());
        self.index.extend(again);
        self.count += 1;
        self
    }

    /// Bytes between the entries and the index.
    #[must_use]
    pub fn gap(mut self, bytes: &[u8]) -> Self {
        self.bytes.extend(bytes);
        self
    }

    #[must_use]
    pub fn finish(self) -> Vec<u8> {
        let Self { mut bytes, index, count } = self;
        let at = bytes.len() as u32;
        bytes.extend(&index);
        // More than fit are told by a second index that nobody here reads.
        let count = u16::try_from(count).unwrap_or(u16::MAX);
        bytes.extend(b"PK\x05\x06\0\0\0\0");
        bytes.extend(count.to_le_bytes());
        bytes.extend(count.to_le_bytes());
        bytes.extend((index.len() as u32).to_le_bytes());
        bytes.extend(at.to_le_bytes());
        bytes.extend([0; 2]);
        bytes
    }
}
