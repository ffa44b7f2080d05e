//! Lists of names that are shortened. The page has the same rule in `web/src/format.ts`.

/// Most names of a list. Further ones are counted.
const NAMES_MAX: usize = 3;

/// Returns the first names that are not empty, and the number of others: `a, b, c and 2 more`.
pub(crate) fn listed_names<T: AsRef<str>>(names: &[T], separator: &str) -> String {
    let known = names.iter().map(|name| name.as_ref());
    let known: Vec<&str> = known.filter(|name| !name.is_empty()).collect();
    let first = &known[..known.len().min(NAMES_MAX)];
    let listed = first.join(separator);
    match known.len() - first.len() {
        0 => listed,
        others => format!("{listed} and {others} more"),
    }
}

#[cfg(test)]
mod tests {
    use super::listed_names;
    use serde::Deserialize;

    /// Names and their list. The tests of the page read the same file.
    const CASES: &str = include_str!("listed_names.json");

    #[derive(Deserialize)]
    struct ListCase(Vec<String>, String);

    #[test]
    fn names_beyond_the_third_are_counted() {
        let cases: Vec<ListCase> = serde_json::from_str(CASES).unwrap();
        assert!(
            cases
                .iter()
                .any(|ListCase(_, list)| list.ends_with(" more"))
        );
        for ListCase(names, list) in cases {
            assert_eq!(listed_names(&names, "; "), list);
        }
    }

    #[test]
    fn separator_stands_between_names_only() {
        assert_eq!(
            listed_names(&["a", "b", "c", "d"], ", "),
            "a, b, c and 1 more"
        );
        assert_eq!(listed_names::<&str>(&[], ", "), "");
    }
}
