//! Whether there is a machine type of some name, in families whose types the file lists.

use super::Limits;
use super::error::LimitsError;
use super::file::MachineTypes;
use super::machine::Machine;
use iosonde_job::diagnostic::nearest;

/// An error if the machine is named like a type of a family that has no such type. Caps are published for families, so
/// that without this a mistyped type would get those of its family.
pub(super) fn check(limits: &Limits, machine: &Machine, product: &str) -> Result<(), LimitsError> {
    let Some(types) = limits.types_of(&machine.family) else {
        return Ok(());
    };
    let name = Name::of(machine);
    if !machine.is_type || exists(types, &name) || limits.names_machine(&machine.name) {
        return Ok(());
    }
    Err(LimitsError::UnknownMachine {
        product: product.to_owned(),
        machine: machine.name.clone(),
        nearest: suggestion(types, &name),
        known: known(types),
        optional: false,
    })
}

/// A name like `c3-standard-88-lssd` taken apart.
struct Name<'a> {
    whole: &'a str,
    /// `standard`.
    word: &'a str,
    vcpus: Option<u32>,
    /// `lssd`.
    rest: &'a str,
}

impl<'a> Name<'a> {
    fn of(machine: &'a Machine) -> Name<'a> {
        let whole = machine.name.as_str();
        let first = whole.split('-').next().unwrap_or_default();
        let word = match first {
            "custom" => Some(first),
            _ => whole.split('-').nth(1),
        };
        Name {
            whole,
            word: word.unwrap_or_default(),
            vcpus: machine.told,
            rest: &machine.rest,
        }
    }
}

fn exists(types: &MachineTypes, name: &Name<'_>) -> bool {
    if types.names.iter().any(|known| known == name.whole) {
        return true;
    }
    let Some(vcpus) = name.vcpus else {
        return false;
    };
    if name.word == "custom" {
        let memory = name.rest.strip_suffix("-ext").unwrap_or(name.rest);
        return types.custom && (vcpus == 1 || vcpus % 2 == 0) && memory.parse::<u32>().is_ok();
    }
    types
        .types
        .get(name.word)
        .is_some_and(|counts| counts.is_empty() || counts.contains(&vcpus))
        && (name.rest.is_empty() || types.endings.iter().any(|ending| ending == name.rest))
}

/// The type that differs least: another word, the next number of vCPUs, another ending.
fn suggestion(types: &MachineTypes, name: &Name<'_>) -> Option<String> {
    let Some(vcpus) = name.vcpus else {
        return nearest(name.whole, types.names.iter().map(String::as_str)).map(str::to_owned);
    };
    let word = nearest(name.word, types.types.keys().map(String::as_str))?;
    let counts = types.types.get(word)?;
    let vcpus = counts
        .iter()
        .min_by_key(|count| count.abs_diff(vcpus))
        .unwrap_or(&vcpus);
    let ending = nearest(name.rest, types.endings.iter().map(String::as_str))
        .filter(|_| !name.rest.is_empty())
        .map_or(String::new(), |ending| format!("-{ending}"));
    Some(format!("{}-{word}-{vcpus}{ending}", types.family.get_ref()))
}

/// All of them, in words: `n2-standard with 2, 4 or 8 vCPUs`.
fn known(types: &MachineTypes) -> String {
    let family = types.family.get_ref();
    let custom = types.custom.then(|| format!("{family}-custom"));
    let words = types.types.iter().map(|(word, counts)| {
        let counts: Vec<String> = counts.iter().map(u32::to_string).collect();
        match counts.is_empty() {
            true => format!("{family}-{word}"),
            false => format!("{family}-{word} with {} vCPUs", counts.join(", ")),
        }
    });
    let all: Vec<String> = words
        .chain(types.names.iter().cloned())
        .chain(custom)
        .collect();
    all.join("; ")
}
