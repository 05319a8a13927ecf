use std::io::Write as _;

use flate2::Compression;
use flate2::write::DeflateEncoder;
use hart_kernel::async_trait;

use super::*;

struct Held(Vec<u8>);

#[async_trait]
impl OpenFile for Held {
    fn size(&self) -> u64 {
        self.0.len() as u64
    }

    fn modified(&self) -> i64 {
        0
    }

    async fn read_at(&self, offset: u64, len: usize) -> io::Result<Bytes> {
        let from = usize::try_from(offset).unwrap_or(usize::MAX).min(self.0.len());
        let to = from.saturating_add(len).min(self.0.len());
        Ok(Bytes::copy_from_slice(&self.0[from..to]))
    }
}

/// Says of itself what it is told to.
fn archive(name: &str, content: &[u8], packed: bool, says: u32) -> Vec<u8> {
    let mut crc = Crc::new();
    crc.update(content);
    let data = match packed {
        false => content.to_vec(),
        true => {
            let mut encoder = DeflateEncoder::new(Vec::new(), Compression::default());
            encoder.write_all(content).unwrap();
            encoder.finish().unwrap()
        }
    };
    let about = [
        &[20, 0, 0, 0][..],
        &[if packed { 8 } else { 0 }, 0, 0, 0, 0, 0],
        &crc.sum().to_le_bytes(),
        &(data.len() as u32).to_le_bytes(),
        &says.to_le_bytes(),
        &(name.len() as u16).to_le_bytes(),
        &[0, 0],
    ]
    .concat();
    let local = [b"PK\x03\x04", &about[..], name.as_bytes(), &data].concat();
    let central = [b"PK\x01\x02\x14\x00", &about[..], &[0; 14], name.as_bytes()].concat();
    let end = [
        b"PK\x05\x06",
        &[0, 0, 0, 0, 1, 0, 1, 0][..],
        &(central.len() as u32).to_le_bytes(),
        &(local.len() as u32).to_le_bytes(),
        &[0, 0],
    ]
    .concat();
    [local, central, end].concat()
}

async fn read(bytes: Vec<u8>, member: &str) -> ApiResult<Option<Vec<u8>>> {
    find(&Held(bytes), member).await
}

#[tokio::test]
async fn a_file_is_found_with_and_without_the_folder_around_it() {
    for packed in [false, true] {
        for member in ["pack/SKILL.md", "SKILL.md"] {
            let found = read(archive("pack/SKILL.md", b"hello", packed, 5), member).await.unwrap();
            assert_eq!(found.as_deref(), Some(&b"hello"[..]), "{member} {packed}");
        }
        let found = read(archive("pack/SKILL.md", b"hello", packed, 5), "other.md").await.unwrap();
        assert_eq!(found, None);
    }
}

#[tokio::test]
async fn what_lies_about_itself_is_refused() {
    let bomb = vec![0; 20 << 20];
    for (what, bytes) in [
        ("a bomb", archive("a", &bomb, true, 5)),
        ("too large", archive("a", &bomb, true, 20 << 20)),
        ("another size", archive("a", b"hello", true, 6)),
        ("no archive", b"hello".to_vec()),
        ("nothing", Vec::new()),
    ] {
        let refused = read(bytes, "a").await.unwrap_err();
        assert_eq!(refused.status.as_u16(), 422, "{what}: {}", refused.detail);
    }
}

#[tokio::test]
async fn damage_anywhere_is_an_error_and_never_a_panic() {
    let whole = archive("pack/SKILL.md", b"hello hello hello", true, 17);
    for at in 0..whole.len() {
        let mut damaged = whole.clone();
        damaged[at] ^= 0xff;
        if let Ok(Some(content)) = read(damaged, "SKILL.md").await {
            assert_eq!(content, b"hello hello hello", "byte {at}");
        }
        let _ = read(whole[..at].to_vec(), "SKILL.md").await;
    }
}
