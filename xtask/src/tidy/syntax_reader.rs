//! Reads a Rust file once: its syntax by `syn`, its words by the lexer.

use super::files::{crate_of, is_test_target};
use super::item_reader;
use super::lexer::{Token, TokenKind};
use super::rust_file::{Function, Import, RustFile, TypeDefinition};
use anyhow::{Context, Result};
use std::collections::HashSet;
use syn::visit::{self, Visit};
use syn::{Attribute, Item};

/// Reads a file's syntax.
///
/// # Errors
///
/// When it is not Rust.
pub(crate) fn read_rust_file(path: &str, text: &str, tokens: &[Token<'_>]) -> Result<RustFile> {
    let syntax = syn::parse_file(text).with_context(|| format!("parsing {path}"))?;
    let mut reader = SyntaxReader {
        file: RustFile {
            path: path.to_owned(),
            krate: crate_of(path).to_owned(),
            module: module_of(path),
            lines: text.lines().count(),
            ..RustFile::default()
        },
        inline: Vec::new(),
        test_depth: 0,
    };
    if is_test_only(&syntax.attrs) {
        reader.test_depth = 1;
        reader.file.test_lines.push(1..=reader.file.lines);
    }
    reader.visit_file(&syntax);
    let mut file = reader.file;
    file.words = words(tokens);
    file.assertions = assertions(tokens);
    let test_lines = &file.test_lines;
    file.assertions
        .retain(|line| !test_lines.iter().any(|lines| lines.contains(line)));
    Ok(file)
}

/// The module of a file by its place below `src`.
fn module_of(path: &str) -> Option<Vec<String>> {
    let (_, inner) = path.split_once("src/")?;
    if is_test_target(path.strip_suffix(inner)?) {
        return None;
    }
    let mut module: Vec<_> = inner
        .strip_suffix(".rs")?
        .split('/')
        .map(str::to_owned)
        .collect();
    let is_root = module.len() == 1 && (module[0] == "lib" || module[0] == "main");
    if is_root || module.last().is_some_and(|name| name == "mod") {
        module.pop();
    }
    Some(module)
}

/// Whether the attributes limit an item to tests: `cfg(test)`, or `cfg(all(test, ...))`.
fn is_test_only(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        let syn::Meta::List(list) = &attribute.meta else {
            return false;
        };
        let mut condition = list.tokens.to_string();
        condition.retain(|c| !c.is_whitespace());
        let is_test = condition == "test" || condition.starts_with("all(test,");
        list.path.is_ident("cfg") && is_test
    })
}

/// `x` for `#[path = "x.rs"]`.
fn stem_of_path_attribute(attributes: &[Attribute]) -> Option<String> {
    attributes.iter().find_map(|attribute| {
        let syn::Meta::NameValue(pair) = &attribute.meta else {
            return None;
        };
        let syn::Expr::Lit(syn::ExprLit {
            lit: syn::Lit::Str(path),
            ..
        }) = &pair.value
        else {
            return None;
        };
        let stem = path.value().strip_suffix(".rs")?.to_owned();
        (pair.path.is_ident("path") && !stem.contains('/')).then_some(stem)
    })
}

fn words(tokens: &[Token<'_>]) -> HashSet<String> {
    let words = tokens.iter().filter(|token| token.kind == TokenKind::Word);
    words.map(|token| token.text.to_owned()).collect()
}

/// Lines of assertions, also of those that the compiler checks.
fn assertions(tokens: &[Token<'_>]) -> Vec<usize> {
    const MACROS: &[&str] = &[
        "assert",
        "assert_eq",
        "assert_ne",
        "debug_assert",
        "debug_assert_eq",
        "debug_assert_ne",
    ];
    let pairs = tokens.windows(2).filter(|pair| pair[1].text == "!");
    let found = pairs.filter(|pair| MACROS.contains(&pair[0].text));
    found.map(|pair| pair[0].line).collect()
}

struct SyntaxReader {
    file: RustFile,
    /// Modules of this file around the present place.
    inline: Vec<String>,
    /// How many items around the present place are compiled for tests only.
    test_depth: usize,
}

impl SyntaxReader {
    fn is_test(&self) -> bool {
        self.test_depth > 0 || is_test_target(&self.file.path)
    }

    fn add_function(&mut self, signature: &syn::Signature, block: &syn::Block, is_free: bool) {
        let is_test = self.is_test();
        let line = signature.fn_token.span.start().line;
        let end = block.brace_token.span.close().end().line;
        self.file.functions.push(Function {
            name: signature.ident.to_string(),
            line,
            lines: end + 1 - line,
            is_free,
            is_test,
        });
    }

    fn add_type(&mut self, ident: &syn::Ident) {
        let is_test = self.is_test();
        self.file.types.push(TypeDefinition {
            name: ident.to_string(),
            line: ident.span().start().line,
            is_test,
        });
    }

    /// Adds a path of production code that begins with `crate`, `self` or `super`, or is one of a
    /// `use`.
    fn add_import(&mut self, segments: &[String], name: Option<String>, line: usize) {
        let Some(module) = self.file.module.as_ref().filter(|_| !self.is_test()) else {
            return;
        };
        let mut base = [module.as_slice(), &self.inline].concat();
        let mut rest = segments;
        match rest.first().map(String::as_str) {
            Some("crate") => {
                base.clear();
                rest = &rest[1..];
            }
            Some("self") => rest = &rest[1..],
            Some("super") => {
                while rest.first().is_some_and(|segment| segment == "super") {
                    base.pop();
                    rest = &rest[1..];
                }
            }
            _ if name.is_some() => {}
            _ => return,
        }
        base.extend_from_slice(rest);
        self.file.imports.push(Import {
            path: base,
            name,
            line,
        });
    }

    fn add_use_tree(&mut self, tree: &syn::UseTree, path: &mut Vec<String>, is_public: bool) {
        match tree {
            syn::UseTree::Path(inner) => {
                path.push(inner.ident.to_string());
                self.add_use_tree(&inner.tree, path, is_public);
                path.pop();
            }
            syn::UseTree::Group(group) => {
                for inner in &group.items {
                    self.add_use_tree(inner, path, is_public);
                }
            }
            syn::UseTree::Name(used) => self.add_use(path, &used.ident, &used.ident),
            syn::UseTree::Rename(used) => {
                if is_public {
                    self.file.renamed.push(used.ident.to_string());
                }
                self.add_use(path, &used.ident, &used.rename);
            }
            syn::UseTree::Glob(glob) => {
                let line = glob.star_token.span.start().line;
                self.add_import(path, Some("*".to_owned()), line);
            }
        }
    }

    fn add_use(&mut self, path: &[String], ident: &syn::Ident, name: &syn::Ident) {
        let mut path = path.to_vec();
        let mut name = name.to_string();
        if ident == "self" {
            name = path.last().cloned().unwrap_or_default();
        } else {
            path.push(ident.to_string());
        }
        self.add_import(&path, Some(name), ident.span().start().line);
    }

    /// Visits an item that only tests have, and notes its lines.
    fn enter_test(
        &mut self,
        attributes: &[Attribute],
        end: Option<usize>,
        visit: impl FnOnce(&mut Self),
    ) {
        let is_test = is_test_only(attributes);
        if is_test && let (Some(first), Some(end)) = (attributes.first(), end) {
            let start = first.pound_token.span.start().line;
            self.file.test_lines.push(start..=end);
        }
        self.test_depth += usize::from(is_test);
        visit(self);
        self.test_depth -= usize::from(is_test);
    }
}

impl<'ast> Visit<'ast> for SyntaxReader {
    fn visit_item(&mut self, item: &'ast Item) {
        let (attributes, end) = extent_of(item);
        self.enter_test(attributes, end, |reader| {
            if reader.test_depth == 0 {
                item_reader::add_items_of(item, &mut reader.file.public_items);
            }
            visit::visit_item(reader, item);
        });
    }

    fn visit_impl_item(&mut self, item: &'ast syn::ImplItem) {
        match item {
            syn::ImplItem::Fn(function) => {
                let end = function.block.brace_token.span.close().end().line;
                self.enter_test(&function.attrs, Some(end), |reader| {
                    visit::visit_impl_item(reader, item);
                });
            }
            _ => visit::visit_impl_item(self, item),
        }
    }

    fn visit_item_mod(&mut self, item: &'ast syn::ItemMod) {
        if item.content.is_none() {
            if let Some(module) = self.file.module.as_ref().filter(|_| self.test_depth > 0) {
                let mut child = [module.as_slice(), &self.inline].concat();
                child.push(item.ident.to_string());
                if let Some(stem) = stem_of_path_attribute(&item.attrs) {
                    // The path is beside this file, which is not the root of a crate.
                    child.truncate(module.len().saturating_sub(1));
                    child.push(stem);
                }
                self.file.test_modules.push(child);
            }
            return;
        }
        self.inline.push(item.ident.to_string());
        visit::visit_item_mod(self, item);
        self.inline.pop();
    }

    fn visit_item_use(&mut self, item: &'ast syn::ItemUse) {
        let is_public = matches!(item.vis, syn::Visibility::Public(_));
        self.add_use_tree(&item.tree, &mut Vec::new(), is_public);
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        let first = path.segments.first().map(|segment| &segment.ident);
        let leads_out =
            |first: &&syn::Ident| ["crate", "self", "super"].iter().any(|word| *first == word);
        if let Some(first) = first.filter(leads_out) {
            let line = first.span().start().line;
            let segments: Vec<_> = path.segments.iter().map(|s| s.ident.to_string()).collect();
            self.add_import(&segments, None, line);
        }
        visit::visit_path(self, path);
    }

    fn visit_item_fn(&mut self, item: &'ast syn::ItemFn) {
        self.add_function(&item.sig, &item.block, true);
        visit::visit_item_fn(self, item);
    }

    fn visit_impl_item_fn(&mut self, item: &'ast syn::ImplItemFn) {
        self.add_function(&item.sig, &item.block, false);
        visit::visit_impl_item_fn(self, item);
    }

    fn visit_trait_item_fn(&mut self, item: &'ast syn::TraitItemFn) {
        if let Some(block) = &item.default {
            self.add_function(&item.sig, block, false);
        }
        visit::visit_trait_item_fn(self, item);
    }

    fn visit_item_struct(&mut self, item: &'ast syn::ItemStruct) {
        self.add_type(&item.ident);
        visit::visit_item_struct(self, item);
    }

    fn visit_item_enum(&mut self, item: &'ast syn::ItemEnum) {
        self.add_type(&item.ident);
        visit::visit_item_enum(self, item);
    }

    fn visit_item_union(&mut self, item: &'ast syn::ItemUnion) {
        self.add_type(&item.ident);
        visit::visit_item_union(self, item);
    }

    fn visit_item_trait(&mut self, item: &'ast syn::ItemTrait) {
        self.add_type(&item.ident);
        visit::visit_item_trait(self, item);
    }

    fn visit_item_type(&mut self, item: &'ast syn::ItemType) {
        self.add_type(&item.ident);
        visit::visit_item_type(self, item);
    }
}

/// Attributes of an item and its last line, where that is known.
fn extent_of(item: &Item) -> (&[Attribute], Option<usize>) {
    let close = |brace: &syn::token::Brace| Some(brace.span.close().end().line);
    match item {
        Item::Mod(item) => {
            let content = item.content.as_ref();
            let end = content.and_then(|(brace, _)| close(brace));
            let line = item.mod_token.span.start().line;
            (&item.attrs, end.or(Some(line)))
        }
        Item::Fn(item) => (&item.attrs, close(&item.block.brace_token)),
        Item::Impl(item) => (&item.attrs, close(&item.brace_token)),
        Item::Trait(item) => (&item.attrs, close(&item.brace_token)),
        Item::Enum(item) => (&item.attrs, close(&item.brace_token)),
        Item::Struct(item) => {
            let end = match &item.fields {
                syn::Fields::Named(fields) => close(&fields.brace_token),
                _ => Some(item.ident.span().end().line),
            };
            (&item.attrs, end)
        }
        Item::Use(item) => (&item.attrs, Some(item.semi_token.span.end().line)),
        Item::Const(item) => (&item.attrs, Some(item.semi_token.span.end().line)),
        Item::Static(item) => (&item.attrs, Some(item.semi_token.span.end().line)),
        Item::Type(item) => (&item.attrs, Some(item.semi_token.span.end().line)),
        Item::Macro(item) => (&item.attrs, None),
        Item::ForeignMod(item) => (&item.attrs, None),
        _ => (&[], None),
    }
}

#[cfg(test)]
pub(crate) fn read_for_test(path: &str, text: &str) -> RustFile {
    read_rust_file(path, text, &super::lexer::tokens(text)).unwrap()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn test_only_items_are_no_production_lines() {
        let text = "\
fn a() {}
#[cfg(test)]
mod fake;
#[cfg(test)]
fn helper() {
}
#[cfg(all(test, unix))]
mod tests {
    fn b() {
        assert!(true);
    }
}
#[cfg(not(test))]
fn c() {
    debug_assert_eq!(1, 1);
}
";
        let file = read_for_test("crates/job/src/x.rs", text);
        assert_eq!(file.production_lines(), 5);
        assert_eq!(file.test_modules, [["x", "fake"]]);
        assert_eq!(file.assertions, [15]);
    }

    #[test]
    fn test_module_of_another_file_name_is_known() {
        let text = "#[cfg(test)]\n#[path = \"c_tests.rs\"]\nmod tests;\n";
        let file = read_for_test("crates/job/src/b/c.rs", text);
        assert_eq!(file.test_modules, [["b", "c_tests"]]);
    }

    #[test]
    fn file_path_gives_module_path() {
        let module = |path| module_of(path).map(|module| module.join("::"));
        assert_eq!(module("crates/job/src/lib.rs").as_deref(), Some(""));
        assert_eq!(
            module("crates/job/src/value/time.rs").as_deref(),
            Some("value::time")
        );
        assert_eq!(
            module("crates/job/src/value/mod.rs").as_deref(),
            Some("value")
        );
        assert_eq!(
            module("crates/job/src/value/main.rs").as_deref(),
            Some("value::main")
        );
        assert_eq!(module("crates/job/tests/plan.rs"), None);
        assert_eq!(module("tests/kube/src/a.rs"), None);
    }

    #[test]
    fn imports_are_resolved_from_their_module() {
        let text = "\
use super::b::{self, C as D};
use crate::e::F;
mod inner {
    use super::super::g::h;
    fn f() -> self::I { crate::j::k() }
}
#[cfg(test)]
use crate::only_in_tests;
";
        let file = read_for_test("crates/job/src/a.rs", text);
        let found: Vec<_> = file
            .imports
            .iter()
            .map(|i| (i.path.join("::"), i.line))
            .collect();
        let wanted = [("b", 1), ("b::C", 1), ("e::F", 2), ("g::h", 4)];
        let wanted = wanted.into_iter().chain([("a::inner::I", 5), ("j::k", 5)]);
        let wanted: Vec<_> = wanted.map(|(path, line)| (path.to_owned(), line)).collect();
        assert_eq!(found, wanted);
        assert_eq!(file.imports[1].name.as_deref(), Some("D"));
    }
}
