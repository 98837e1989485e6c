//! One-time tokens: what a client may ask for once, within a minute.
//!
//! A token is 128 random bits. Only its hash is kept, and looked up, so that neither memory nor the time of a look-up tells
//! anything about a token. Fails when too many wait for their clients.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use sha2::{Digest, Sha256};
use tokio::time::Instant;

use crate::error::Error;

type Hash = [u8; 32];

/// Requests that wait for their clients.
pub(super) struct Tokens<T> {
    waiting: Mutex<HashMap<Hash, (Instant, T)>>,
    most: usize,
    life: Duration,
}

impl<T> Tokens<T> {
    pub fn new(most: usize, life: Duration) -> Self {
        Self {
            waiting: Mutex::default(),
            most,
            life,
        }
    }

    /// Keeps a request; gives the token that takes it.
    ///
    /// # Errors
    /// [`Error::Exhausted`] when too many wait.
    pub fn issue(&self, request: T) -> Result<String, Error> {
        let mut bits = [0_u8; 16];
        getrandom::fill(&mut bits)
            .map_err(|error| Error::Internal(format!("no random bits for a token: {error}")))?;
        let token: String = bits.iter().map(|byte| format!("{byte:02x}")).collect();
        let now = Instant::now();
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        waiting.retain(|_, (issued, _)| now.duration_since(*issued) < self.life);
        if waiting.len() >= self.most {
            return Err(Error::Exhausted(format!(
                "{} streaming requests wait for their clients already",
                self.most
            )));
        }
        waiting.insert(hash(&token), (now, request));
        Ok(token)
    }

    /// Takes the request of a token: once, whatever becomes of it.
    pub fn take(&self, token: &str) -> Option<T> {
        let key = hash(token);
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        let (issued, request) = waiting.remove(&key)?;
        (issued.elapsed() < self.life).then_some(request)
    }
}

fn hash(token: &str) -> Hash {
    Sha256::digest(token.as_bytes()).into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Kind;

    const LIFE: Duration = Duration::from_secs(60);

    #[tokio::test(start_paused = true)]
    async fn a_token_is_good_once_and_for_a_minute() {
        let tokens = Tokens::new(10, LIFE);
        let token = tokens.issue(1).unwrap();
        assert_eq!(token.len(), 32);
        assert_eq!(tokens.take("0"), None);
        assert_eq!(tokens.take(&token), Some(1));
        assert_eq!(tokens.take(&token), None, "used up");
        let token = tokens.issue(2).unwrap();
        tokio::time::advance(LIFE).await;
        assert_eq!(tokens.take(&token), None, "too late");
    }

    #[tokio::test(start_paused = true)]
    async fn only_so_many_wait_and_old_ones_make_room() {
        let tokens = Tokens::new(2, LIFE);
        tokens.issue(1).unwrap();
        tokens.issue(2).unwrap();
        let refused = tokens.issue(3).unwrap_err();
        assert_eq!(refused.kind(), Kind::ResourceExhausted);
        tokio::time::advance(LIFE).await;
        tokens.issue(4).unwrap();
    }
}
