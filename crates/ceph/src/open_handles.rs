//! [`OpenHandles`]: open handles of a library that jobs share.

use std::sync::{Arc, Mutex, PoisonError};

/// Open handles of a library, by the key of what is opened. A thread that opens one key blocks only
/// threads that want the same key. A key stays: there are as many as targets of one command.
pub(crate) struct OpenHandles<K, T>(Mutex<Vec<(K, Arc<Mutex<T>>)>>);

impl<K: Clone + PartialEq, T: Default> OpenHandles<K, T> {
    pub(crate) const fn new() -> Self {
        OpenHandles(Mutex::new(Vec::new()))
    }

    /// Handles of a key. The table is unlocked again before the caller connects.
    pub(crate) fn handles_of_key(&self, key: &K) -> Arc<Mutex<T>> {
        let mut table = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, handles)) = table.iter().find(|(other, _)| other == key) {
            return handles.clone();
        }
        let handles = Arc::default();
        table.push((key.clone(), Arc::clone(&handles)));
        handles
    }

    /// Handles of all keys.
    pub(crate) fn handles_of_all_keys(&self) -> Vec<Arc<Mutex<T>>> {
        let table = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        table.iter().map(|(_, handles)| handles.clone()).collect()
    }
}

/// Finds an entry of a list, or appends a new one.
pub(crate) fn find_or_insert<T, E>(
    entries: &mut Vec<T>,
    is_meant: impl FnMut(&T) -> bool,
    open: impl FnOnce() -> Result<T, E>,
) -> Result<&mut T, E> {
    let index = match entries.iter().position(is_meant) {
        Some(index) => index,
        None => {
            entries.push(open()?);
            entries.len() - 1
        }
    };
    Ok(&mut entries[index])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entry_is_opened_once_and_a_failure_adds_none() {
        let mut entries = vec![1];
        let mut find = |value: i32, opened: Result<i32, &'static str>| {
            find_or_insert(&mut entries, |known| *known == value, || opened).copied()
        };
        assert_eq!(find(1, Err("not opened again")), Ok(1));
        assert_eq!(find(2, Err("refused")), Err("refused"));
        assert_eq!(find(2, Ok(2)), Ok(2));
        assert_eq!(find(2, Err("not opened again")), Ok(2));
        assert_eq!(entries, [1, 2]);
    }

    #[test]
    fn opening_one_key_blocks_only_openers_of_that_key() {
        let handles: OpenHandles<&str, Option<u32>> = OpenHandles::new();
        let slow = handles.handles_of_key(&"slow");
        let connecting = slow.lock().unwrap();
        let other = handles.handles_of_key(&"other");
        assert!(
            other.try_lock().is_ok(),
            "another cluster is not waited for"
        );
        assert!(handles.handles_of_key(&"slow").try_lock().is_err());
        drop(connecting);
        *slow.lock().unwrap() = Some(1);
        assert_eq!(*handles.handles_of_key(&"slow").lock().unwrap(), Some(1));
        assert_eq!(handles.handles_of_all_keys().len(), 2);
    }
}
