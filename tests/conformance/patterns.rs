//! `buffer_pattern`: generated patterns in fio's parser and in iosonde's.

use std::fmt::Write;
use std::fs;

use iosonde_e2e::{Program, Scratch};
use iosonde_workload::rng::mix64;

/// Size of each file: longer than every pattern and no multiple of most.
const FILE_BYTES: usize = 601;

/// A seeded source of random choices.
struct Choices(std::vec::IntoIter<u8>);

impl Choices {
    /// The bytes of SplitMix64 (Steele, Lea and Flood: Fast splittable pseudorandom number
    /// generators, 2014), for which [`mix64`] adds the increment once more.
    fn from_seed(seed: u64) -> Choices {
        const WORDS: u64 = 1 << 11;
        const INCREMENT: u64 = 0x9e37_79b9_7f4a_7c15;
        let words = (0..WORDS).map(|word| mix64(seed.wrapping_add(word.wrapping_mul(INCREMENT))));
        let bytes: Vec<u8> = words.flat_map(u64::to_le_bytes).collect();
        Choices(bytes.into_iter())
    }

    fn below(&mut self, bound: usize) -> usize {
        usize::from(self.0.next().expect("enough random bytes")) % bound
    }

    fn text(&mut self, letters: &str, length: usize) -> String {
        let letters: Vec<char> = letters.chars().collect();
        let letter = |_| letters[self.below(letters.len())];
        (0..length).map(letter).collect()
    }

    /// One part of a pattern.
    fn part(&mut self) -> String {
        let length = 1 + self.below(4);
        match self.below(6) {
            0 => format!("\"{}\"", self.text("ab 0x1%,:'-", length)),
            1 => "'file'".to_owned(),
            2 => format!("-{}", 1 + self.below(255) * self.below(255)),
            3 => self.text("0123456789", length),
            4 => format!("0X{}", self.text("0123456789abcdefABCDEF", length + 1)),
            _ => format!("0x{}", self.text("0123456789abcdef", 1 + length * 2)),
        }
    }

    /// A pattern that fio accepts. fio's lookahead for `0x` stops after 23 characters.
    fn pattern(&mut self) -> String {
        loop {
            let parts = 1 + self.below(4);
            let pattern: String = (0..parts).map(|_| self.part()).collect();
            if pattern.len() < 24 && !is_out_of_range(&pattern) {
                return pattern;
            }
        }
    }
}

/// Whether adjacent decimal numbers may exceed 31 bits.
fn is_out_of_range(pattern: &str) -> bool {
    pattern
        .split(|c: char| !c.is_ascii_digit())
        .any(|digits| digits.len() > 9)
}

/// The contents that each pattern produces in a file.
fn contents(program: Program, patterns: &[String]) -> Vec<Vec<u8>> {
    let scratch = Scratch::shared();
    scratch.write("file", "XYZ");
    let size = FILE_BYTES;
    let mut job = format!("[global]\nrw=write\nbs={size}\nsize={size}\nthread\n");
    for (number, pattern) in patterns.iter().enumerate() {
        let _ = write!(
            job,
            "[{number}]\nfilename=out.{number}\nbuffer_pattern={pattern}\n"
        );
    }
    scratch.write("job.fio", job);
    let _ = program.line(&scratch, "job.fio --output-format=terse").ok();
    let read = |number| fs::read(scratch.work().join(format!("out.{number}")));
    (0..patterns.len())
        .map(|number| read(number).expect("a file of each job"))
        .collect()
}

#[test]
fn generated_patterns_fill_files_as_in_fio() {
    let mut choices = Choices::from_seed(28);
    let fixed = [
        "\"abcd\"-120xdeadface",
        "0xff0x14",
        "0x00x12",
        "1200x12",
        "00x12",
        "+5",
        "\"ab\" 1",
        "0x00ff 1",
        "-2147483648",
        "'file''file'",
    ];
    let fixed = fixed.map(str::to_owned).into_iter();
    let drawn = (0..200).map(|_| choices.pattern());
    let patterns: Vec<String> = fixed.chain(drawn).collect();
    let [reference, subject] = Program::both().map(|program| contents(program, &patterns));
    for (number, pattern) in patterns.iter().enumerate() {
        assert_eq!(subject[number].len(), FILE_BYTES, "{pattern}");
        assert!(
            reference[number] == subject[number],
            "{pattern}\nfio:     {:02x?}\nsubject: {:02x?}",
            &reference[number][..24],
            &subject[number][..24]
        );
    }
}

#[test]
fn patterns_refused_by_fio_are_refused() {
    let scratch = Scratch::shared();
    scratch.write("file", "XYZ");
    scratch.write("empty", "");
    for pattern in [
        "4294967295",
        "2147483648",
        "12 0x5",
        "0x00ff 0x1",
        "\"ab\" \"cd\"",
        "\"open",
        "'none'",
        "'empty'",
        "1%o",
        "0x0x12",
        "abc",
        "1,2",
    ] {
        for program in Program::both() {
            let option = format!("--buffer_pattern={pattern}");
            let words = ["--parse-only", "--name=a", "--size=1k", &option];
            let run = program.args(&scratch, words).run();
            assert!(!run.status.success(), "{program:?}: {pattern}: {run}");
        }
    }
}
