//! Command lines drawn from the option table, and mutations of them.

use iosonde_job::options;
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

use super::values::{draw_value, is_drawable, pick};

/// Each command line is determined by this seed and its number.
const SEED: u64 = 0x0000_1050_0de0_0028;

/// Options of every command line; their values come from the same lists as others.
const BASE: [&str; 4] = ["rw", "bs", "size", "ioengine"];

/// An option of a command line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Word {
    pub(super) name: String,
    pub(super) value: Option<String>,
}

impl Word {
    fn new(name: &str, value: Option<String>) -> Word {
        Word {
            name: name.to_owned(),
            value,
        }
    }

    fn text(&self) -> String {
        match &self.value {
            Some(value) => format!("{}={value}", self.name),
            None => self.name.clone(),
        }
    }
}

/// A command line or a job file, with the options of one or two jobs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct CommandLine {
    pub(super) words: Vec<Word>,
    /// Number of last words in `[global]` of a job file; `None` for a command line.
    globals: Option<usize>,
}

impl CommandLine {
    /// The command line with this number.
    pub(super) fn draw(number: u64) -> CommandLine {
        let mut random =
            Xoshiro256PlusPlus::seed_from_u64(SEED ^ number.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let mut words = draw_job("a", &mut random);
        if random.random_range(0..6) == 0 {
            words.extend(draw_job("b", &mut random));
            if random.random_range(0..2) == 0 {
                words.push(Word::new("stonewall", None));
            }
        }
        let globals = (random.random_range(0..4) == 0).then(|| {
            let count = random.random_range(0..3);
            words.extend(draw_options(count, "psync", &mut random));
            count
        });
        CommandLine { words, globals }
    }

    /// The line with one or two mistakes or another spelling: most are errors.
    pub(super) fn mutate(&self, number: u64) -> CommandLine {
        let mut random =
            Xoshiro256PlusPlus::seed_from_u64(!SEED ^ number.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let mut words = self.words.clone();
        for _ in 0..random.random_range(1..=2) {
            let at = random.random_range(1..words.len());
            mutate_word(at, &mut words, &mut random);
        }
        CommandLine {
            words,
            globals: self.globals,
        }
    }

    /// The arguments in order; empty for a job file.
    pub(super) fn arguments(&self) -> Vec<String> {
        match self.globals {
            None => self
                .words
                .iter()
                .map(|word| format!("--{}", word.text()))
                .collect(),
            Some(_) => Vec::new(),
        }
    }

    /// The job file; `None` for a command line.
    pub(super) fn job_file(&self) -> Option<String> {
        let (jobs, globals) = self.words.split_at(self.words.len() - self.globals?);
        let mut lines = vec!["[global]".to_owned()];
        lines.extend(globals.iter().map(Word::text));
        for word in jobs {
            match (word.name.as_str(), &word.value) {
                ("name", Some(name)) => lines.push(format!("[{name}]")),
                _ => lines.push(word.text()),
            }
        }
        Some(lines.join("\n") + "\n")
    }

    /// The text for reports and for the patterns of disagreements.toml.
    pub(super) fn text(&self) -> String {
        match self.job_file() {
            Some(file) => format!("job file: {}", file.trim_end().replace('\n', " | ")),
            None => self.arguments().join(" "),
        }
    }

    /// Whether two writers of a job may overwrite each other's verified blocks.
    pub(super) fn races(&self) -> bool {
        let files = self.values_of(&["filename"]).count();
        let clones = self.values_of(&["numjobs"]).next().is_some();
        self.verifies() && (clones || files > 1)
    }

    /// Whether the job verifies, and so reads the blocks that it wrote.
    pub(super) fn verifies(&self) -> bool {
        let mut names = self.words.iter().map(|word| word.name.as_str());
        names.any(|name| name.starts_with("verify") || name == "do_verify")
    }

    /// Whether time determines how much a job moves.
    pub(super) fn is_timed(&self) -> bool {
        let timed = [
            "runtime",
            "timeout",
            "ramp_time",
            "steadystate",
            "ss",
            "latency_target",
            "latency_run",
            "exitall",
            "exit_what",
            "exitall_on_error",
            "flow",
            "flow_id",
            "rate_min",
            "ratemin",
            "rate_iops_min",
            "startdelay",
        ];
        self.values_of(&timed).next().is_some()
    }

    /// Whether a job mixes directions.
    pub(super) fn is_mixed(&self) -> bool {
        let mixed = [
            "rw",
            "randrw",
            "readwrite",
            "randreadwrite",
            "trimwrite",
            "randtrimwrite",
        ];
        self.values_of(&["rw", "readwrite"])
            .filter_map(|value| value.split(':').next())
            .any(|pattern| mixed.contains(&pattern.trim().to_lowercase().as_str()))
    }

    /// Whether I/O sizes are random, or depend on a random direction.
    pub(super) fn draws_sizes(&self) -> bool {
        let drawn = ["bsrange", "blocksize_range", "bssplit"];
        let is_list = self
            .values_of(&["bs", "blocksize"])
            .any(|value| value.contains([',', '-']));
        is_list || self.values_of(&drawn).next().is_some()
    }

    /// Whether the number of syncs depends on random draws or on time.
    pub(super) fn draws_syncs(&self) -> bool {
        self.is_mixed() || self.draws_sizes() || self.is_timed()
    }

    fn values_of<'a>(&'a self, names: &'a [&str]) -> impl Iterator<Item = &'a str> {
        let words = self
            .words
            .iter()
            .filter(|word| names.contains(&word.name.as_str()));
        words.map(|word| word.value.as_deref().unwrap_or_default())
    }
}

fn draw_job(name: &str, random: &mut Xoshiro256PlusPlus) -> Vec<Word> {
    let mut words = vec![Word::new("name", Some(name.to_owned()))];
    if random.random_range(0..2) == 0 {
        words.push(Word::new("filename", Some("target".to_owned())));
    }
    let mut engine = "psync".to_owned();
    for option in BASE {
        // Each may be absent, so that defaults are compared as well.
        if option != "size" && random.random_range(0..4) == 0 {
            continue;
        }
        let row = options::find_option(option).expect("a row of the base");
        let value = draw_value(row, random);
        if option == "ioengine" {
            engine = value.clone().unwrap_or_default();
        }
        words.push(Word::new(option, value));
    }
    let is_long = random.random_range(0..8) == 0;
    let count = random.random_range(if is_long { 5..=10 } else { 1..=4 });
    words.extend(draw_options(count, &engine, random));
    words
}

fn draw_options(count: usize, engine: &str, random: &mut Xoshiro256PlusPlus) -> Vec<Word> {
    let rows: Vec<_> = options::list_options()
        .filter(|row| is_drawable(row, engine))
        .collect();
    let mut words = Vec::new();
    for _ in 0..count {
        let key: u64 = random.random();
        // The lowest hash wins: a new row changes only the lines in which it appears.
        let row = rows
            .iter()
            .min_by_key(|row| hash(key, row.name))
            .expect("rows");
        let mut random = Xoshiro256PlusPlus::seed_from_u64(hash(key, row.name));
        let names: Vec<_> = row.names().collect();
        let name: &str = pick::<&str>(&names, &mut random);
        words.push(Word::new(name, draw_value(row, &mut random)));
    }
    words
}

/// FNV-1a of the name, mixed with the key.
fn hash(key: u64, name: &str) -> u64 {
    const OFFSET_BASIS: u64 = 0xcbf2_9ce4_8422_2325;
    const PRIME: u64 = 0x0100_0000_01b3;
    let bytes = key.to_le_bytes().into_iter().chain(name.bytes());
    let sum = bytes.fold(OFFSET_BASIS, |sum, byte| {
        (sum ^ u64::from(byte)).wrapping_mul(PRIME)
    });
    // Otherwise the last bytes hardly affect the high bits.
    (sum ^ (sum >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9)
}

/// Options with small numbers only: a suffix would exceed memory, files or processes.
const BOUNDED: [&str; 14] = [
    "bs",
    "blocksize",
    "bsrange",
    "blocksize_range",
    "bssplit",
    "iodepth",
    "numjobs",
    "nrfiles",
    "lockmem",
    "offset",
    "verify_async",
    "iomem_align",
    "mem_align",
    "loops",
];

fn mutate_word(at: usize, words: &mut Vec<Word>, random: &mut Xoshiro256PlusPlus) {
    let mut word = words[at].clone();
    let is_bounded = BOUNDED.contains(&word.name.as_str());
    let value = word.value.clone().unwrap_or_default();
    match random.random_range(0..13) {
        0 => word.value = None,
        1 => word.value = Some(String::new()),
        2 if !is_bounded => {
            word.value = Some(format!(
                "{value}{}",
                pick(&["k", "kb", "KiB", "%", "%%", "z", "s", "ms"], random)
            ))
        }
        3 => word.value = Some(format!("-{value}")),
        4 => word.value = Some(value.to_uppercase()),
        5 => {
            word.value = Some(format!(
                "{value}{}",
                pick(&[",", ":", "/", " ", ",,", "x"], random)
            ))
        }
        6 => word.value = Some(format!("{} {value}", " ".repeat(random.random_range(0..2)))),
        7 => {
            word.value = Some(format!("0x{value}"))
                .filter(|_| !is_bounded)
                .or(Some(value))
        }
        8 => {
            // A prefix of the name: the command line accepts an unambiguous one.
            let kept = word
                .name
                .len()
                .saturating_sub(random.random_range(1..3))
                .max(2);
            word.name.truncate(kept);
        }
        9 => {
            let mut letters: Vec<char> = word.name.chars().collect();
            let last = letters.len() - 1;
            letters.swap(last / 2, last);
            word.name = letters.into_iter().collect();
        }
        10 => {
            let cut = value
                .char_indices()
                .next_back()
                .map_or(0, |(index, _)| index);
            word.value = Some(value[..cut].to_owned());
        }
        11 => {
            // The option once more, with another value.
            if let Some(row) = options::find_option(&word.name).filter(|row| row.name != "name") {
                word.value = draw_value(row, random);
                words.insert(at + 1, word);
                return;
            }
        }
        _ => {
            word.value = Some(format!("{value}{value}"))
                .filter(|_| !is_bounded)
                .or(Some(value))
        }
    }
    words[at] = word;
}
