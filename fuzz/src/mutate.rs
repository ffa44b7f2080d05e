//! Mutations of known inputs: the same seed gives the same inputs on any machine.

use rand::{Rng, RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

/// Words that the parsers know, inserted anywhere.
const DICTIONARY: [&str; 56] = [
    "\n",
    "=",
    ",",
    ":",
    "/",
    "-",
    ";",
    "#",
    "[global]\n",
    "[",
    "]",
    "include ",
    "${SIZE}",
    "${",
    "$ncpus",
    "$pagesize*2",
    "(8*4k)",
    "(",
    ")",
    "%",
    "k",
    "KiB",
    "1.5m",
    "0x",
    "18446744073709551616",
    "-1",
    "1e400",
    "é",
    "\u{feff}",
    "\0",
    "\r\n",
    "\"",
    "\\",
    "\\:",
    "4k-8k,16k",
    "4k/50:8k/",
    "random:",
    "zipf:1.2",
    "zoned:50/5:30/15:20/",
    "--name=",
    "--",
    "--runtim=",
    "-",
    "rw=randrw\n",
    "bs=",
    "bssplit=",
    "numjobs=",
    "stonewall\n",
    "verify=crc32c\n",
    "verify_pattern=0xdead%o",
    "kb_base=1000\n",
    "size=10%\n",
    "rate=,,1m\n",
    "startdelay=5-9\n",
    "iodepth=",
    "ioengine=",
];

/// Generates inputs from known ones.
#[derive(Debug)]
pub struct Mutator {
    corpus: Vec<Vec<u8>>,
    random: Xoshiro256PlusPlus,
}

impl Mutator {
    /// Creates a mutator from known inputs, at least one.
    #[must_use]
    pub fn new(corpus: Vec<Vec<u8>>, seed: u64) -> Mutator {
        assert!(!corpus.is_empty(), "mutations need something to mutate");
        Mutator {
            corpus,
            random: Xoshiro256PlusPlus::seed_from_u64(seed),
        }
    }

    /// Returns a known input with one to eight changes.
    pub fn next_input(&mut self) -> Vec<u8> {
        let mut input = self.known().clone();
        for _ in 0..self.random.random_range(1..=8) {
            self.change(&mut input);
        }
        input
    }

    fn known(&mut self) -> &Vec<u8> {
        let index = self.random.random_range(0..self.corpus.len());
        &self.corpus[index]
    }

    fn change(&mut self, input: &mut Vec<u8>) {
        let at = self.random.random_range(0..=input.len());
        match self.random.random_range(0..7) {
            0 => self.insert_word(input, at),
            1 => self.insert_piece(input, at),
            2 if at < input.len() => input[at] ^= 1 << self.random.random_range(0..8),
            3 if at < input.len() => input[at] = self.random.next_u32().to_le_bytes()[0],
            4 => self.remove(input, at),
            5 => self.repeat(input, at),
            _ => self.insert_digit(input, at),
        }
    }

    fn insert_word(&mut self, input: &mut Vec<u8>, at: usize) {
        let word = DICTIONARY[self.random.random_range(0..DICTIONARY.len())];
        input.splice(at..at, word.bytes());
    }

    /// Inserts a part of another input.
    fn insert_piece(&mut self, input: &mut Vec<u8>, at: usize) {
        let other = self.known().clone();
        let start = self.random.random_range(0..=other.len());
        let end = self.random.random_range(start..=other.len());
        input.splice(at..at, other[start..end].iter().copied());
    }

    fn remove(&mut self, input: &mut Vec<u8>, at: usize) {
        let end = (at + self.random.random_range(1..16)).min(input.len());
        input.drain(at..end);
    }

    fn repeat(&mut self, input: &mut Vec<u8>, at: usize) {
        let end = (at + self.random.random_range(1..32)).min(input.len());
        let piece = input[at..end].to_vec();
        input.splice(at..at, piece);
    }

    fn insert_digit(&mut self, input: &mut Vec<u8>, at: usize) {
        let digit = b'0' + u8::try_from(self.random.random_range(0..10_u32)).expect("a digit");
        input.insert(at, digit);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seed_determines_mutated_inputs() {
        let inputs = |seed| {
            let mut mutator = Mutator::new(vec![b"[job]\nsize=4k\n".to_vec()], seed);
            (0..50).map(|_| mutator.next_input()).collect::<Vec<_>>()
        };
        assert_eq!(inputs(1), inputs(1));
        assert_ne!(inputs(1), inputs(2));
    }
}
