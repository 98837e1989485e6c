//! Sizes of a client's terminal: JSON objects one after another, cut anywhere.

use serde::Deserialize;

/// A client that sends more than this without an object's end sends no sizes.
const LONGEST: usize = 4 * 1024;

#[derive(Deserialize)]
struct Size {
    #[serde(rename = "Width", alias = "width")]
    width: u16,
    #[serde(rename = "Height", alias = "height")]
    height: u16,
}

/// Reads sizes from the bytes of a resize stream.
#[derive(Default)]
pub(super) struct Resizes {
    rest: Vec<u8>,
}

impl Resizes {
    /// Takes bytes; gives the sizes that are complete with them, without those of zero, which no terminal has. `None`: it is no size.
    pub fn read(&mut self, bytes: &[u8]) -> Option<Vec<(u16, u16)>> {
        self.rest.extend_from_slice(bytes);
        let mut objects = serde_json::Deserializer::from_slice(&self.rest).into_iter::<Size>();
        let mut sizes = Vec::new();
        loop {
            match objects.next() {
                Some(Ok(size)) => sizes.push((size.width, size.height)),
                Some(Err(error)) if error.is_eof() => break,
                Some(Err(_)) => return None,
                None => break,
            }
        }
        let read = objects.byte_offset();
        self.rest.drain(..read.min(self.rest.len()));
        if self.rest.len() > LONGEST {
            return None;
        }
        sizes.retain(|(width, height)| *width > 0 && *height > 0);
        Some(sizes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_cut_anywhere() {
        let text = b"{\"Width\":80,\"Height\":24}\n{\"Width\":0,\"Height\":0}\n{\"Height\":50,\"Width\":132}";
        for cut in 0..text.len() {
            let (one, two) = text.split_at(cut);
            let mut resizes = Resizes::default();
            let mut sizes = resizes.read(one).expect("sizes");
            sizes.extend(resizes.read(two).expect("sizes"));
            assert_eq!(sizes, [(80, 24), (132, 50)], "cut at {cut}");
        }
    }

    #[test]
    fn what_is_no_size_ends_it() {
        assert!(Resizes::default().read(b"hello").is_none());
        assert!(
            Resizes::default()
                .read(b"{\"Width\":-1,\"Height\":2}")
                .is_none()
        );
        let endless = vec![b' '; LONGEST + 1];
        let mut resizes = Resizes::default();
        resizes.read(b"{").expect("maybe");
        assert!(resizes.read(&endless).is_none());
    }
}
