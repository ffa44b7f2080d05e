//! Check of machine types of the families whose types the file lists.

use super::Limits;
use super::error::LimitsError;
use super::limits_file::MachineTypes;
use super::queried_machine::QueriedMachine;
use iosonde_job::diagnostic::nearest;

/// Returns an error if the machine's family has no type of this name. Caps are published for
/// families, so a mistyped type would otherwise get the caps of its family.
pub(super) fn check(
    limits: &Limits,
    machine: &QueriedMachine,
    product: &str,
) -> Result<(), LimitsError> {
    let Some(types) = limits.family_types(&machine.family) else {
        return Ok(());
    };
    let name = MachineTypeName::parse(machine);
    if !machine.is_type || exists(types, &name) || limits.names_machine(&machine.name) {
        return Ok(());
    }
    Err(LimitsError::UnknownMachine {
        product: product.to_owned(),
        machine: machine.name.clone(),
        nearest: suggestion(types, &name),
        known: list_types(types),
        optional: false,
    })
}

/// Parts of a name such as `c3-standard-88-lssd`.
struct MachineTypeName<'a> {
    whole: &'a str,
    /// `standard`.
    word: &'a str,
    vcpus: Option<u32>,
    /// `lssd`.
    rest: &'a str,
}

impl<'a> MachineTypeName<'a> {
    fn parse(machine: &'a QueriedMachine) -> MachineTypeName<'a> {
        let whole = machine.name.as_str();
        let first = whole.split('-').next().unwrap_or_default();
        let word = match first {
            "custom" => Some(first),
            _ => whole.split('-').nth(1),
        };
        MachineTypeName {
            whole,
            word: word.unwrap_or_default(),
            vcpus: machine.vcpus_in_name,
            rest: &machine.rest,
        }
    }
}

fn exists(types: &MachineTypes, name: &MachineTypeName<'_>) -> bool {
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

/// Returns the most similar type: by word, then by number of vCPUs, then by suffix.
fn suggestion(types: &MachineTypes, name: &MachineTypeName<'_>) -> Option<String> {
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

/// Lists the types of a family: `n2-standard with 2, 4, 8 vCPUs`.
fn list_types(types: &MachineTypes) -> String {
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
