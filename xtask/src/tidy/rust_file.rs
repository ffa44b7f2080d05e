//! Facts about a Rust file that rules need.

use super::files::is_test_target;
use super::item_reader::PublicItem;
use std::collections::HashSet;
use std::ops::RangeInclusive;

/// A function with its body.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Function {
    pub(crate) name: String,
    pub(crate) line: usize,
    /// From the line of `fn` to the closing brace.
    pub(crate) lines: usize,
    /// Whether it belongs to no type and no trait.
    pub(crate) is_free: bool,
    pub(crate) is_test: bool,
}

/// The definition of a struct, enum, union, trait or alias.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct TypeDefinition {
    pub(crate) name: String,
    pub(crate) line: usize,
    pub(crate) is_test: bool,
}

/// A path that leads to another module: of a `use`, or written out in the code.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Import {
    /// From the root of the crate. For a path that begins with the name of a crate, it is that
    /// name.
    pub(crate) path: Vec<String>,
    /// The name that a `use` gives to the path; `None` for a path in the code.
    pub(crate) name: Option<String>,
    pub(crate) line: usize,
}

/// Facts about one Rust file.
#[derive(Debug, Default)]
pub(crate) struct RustFile {
    pub(crate) path: String,
    pub(crate) krate: String,
    /// The module of the file within its crate; `None` outside of `src`.
    pub(crate) module: Option<Vec<String>>,
    pub(crate) lines: usize,
    /// Lines of items that are compiled for tests only.
    pub(crate) test_lines: Vec<RangeInclusive<usize>>,
    /// Child modules in files of their own that are compiled for tests only.
    pub(crate) test_modules: Vec<Vec<String>>,
    pub(crate) functions: Vec<Function>,
    pub(crate) types: Vec<TypeDefinition>,
    /// Imports of production code.
    pub(crate) imports: Vec<Import>,
    pub(crate) public_items: Vec<PublicItem>,
    /// Names that a public `use ... as` gives another name.
    pub(crate) renamed: Vec<String>,
    /// Lines of assertions in production code.
    pub(crate) assertions: Vec<usize>,
    /// All identifiers of the file.
    pub(crate) words: HashSet<String>,
}

impl RustFile {
    /// Whether the line is compiled for tests only.
    pub(crate) fn is_test_line(&self, line: usize) -> bool {
        is_test_target(&self.path) || self.test_lines.iter().any(|lines| lines.contains(&line))
    }

    /// Lines that are not compiled for tests only.
    pub(crate) fn production_lines(&self) -> usize {
        if is_test_target(&self.path) {
            return 0;
        }
        let is_test = |line: &usize| self.test_lines.iter().any(|lines| lines.contains(line));
        (1..=self.lines).filter(|line| !is_test(line)).count()
    }
}

/// Files below `src`, without modules that only tests have.
pub(crate) fn production_files(files: &[RustFile]) -> Vec<&RustFile> {
    let test_modules: HashSet<(&str, &[String])> = files
        .iter()
        .flat_map(|file| {
            file.test_modules
                .iter()
                .map(|module| (file.krate.as_str(), module.as_slice()))
        })
        .collect();
    let is_production = |file: &&RustFile| {
        let Some(module) = &file.module else {
            return false;
        };
        let mut prefixes = (1..=module.len()).map(|length| &module[..length]);
        let is_test = prefixes.any(|prefix| test_modules.contains(&(file.krate.as_str(), prefix)));
        !is_test && !file.path.ends_with("/tests.rs")
    };
    files.iter().filter(is_production).collect()
}
