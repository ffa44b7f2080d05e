//! `--idle-prof`: idle time of the processors during the jobs, in fio's layout.
//!
//! fio runs a thread of low priority on each processor and reports the duration of its unit of
//! work. iosonde uses the kernel's idle time, and reports 0 for that duration.

use crate::machine::MachineSeries;
use iosonde_job::cmdline::IdleProfile;
use serde_json::{Map, Value};
use std::io::{self, Write};

/// Returns the mean over all processors. `None` if it is unknown, as in a simulated run.
fn system(machine: &MachineSeries) -> Option<f64> {
    let idle = &machine.idle_percent;
    (!idle.is_empty()).then(|| idle.values().sum::<f64>() / idle.len() as f64)
}

/// Returns the member `cpu_idleness` of the JSON.
pub(super) fn cpu_idleness_json(machine: &MachineSeries, profile: IdleProfile) -> Option<Value> {
    let mut idleness = Map::new();
    idleness.insert("system".into(), system(machine)?.into());
    if profile == IdleProfile::PerCpu {
        for (number, idle) in &machine.idle_percent {
            idleness.insert(format!("cpu-{number}"), (*idle).into());
        }
    }
    for unit in ["unit_mean", "unit_stddev"] {
        idleness.insert(unit.into(), 0.0.into());
    }
    Some(Value::Object(idleness))
}

/// Writes the last lines of the normal output.
pub(super) fn write_normal(
    out: &mut impl Write,
    machine: &MachineSeries,
    profile: IdleProfile,
) -> io::Result<()> {
    let Some(system) = system(machine) else {
        return Ok(());
    };
    writeln!(out, "\nCPU idleness:\n  system: {system:.2}%")?;
    if profile == IdleProfile::PerCpu {
        let each = machine.idle_percent.values();
        let each: Vec<String> = each.map(|idle| format!("{idle:.2}%")).collect();
        writeln!(out, "  percpu: {}", each.join(", "))?;
    }
    writeln!(out, "  unit work: mean=0.00us, stddev=0.00")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json as value;

    fn machine() -> MachineSeries {
        MachineSeries {
            idle_percent: [(0, 56.5), (1, 97.5)].into(),
            ..MachineSeries::default()
        }
    }

    fn text(machine: &MachineSeries, profile: IdleProfile) -> String {
        let mut out = Vec::new();
        write_normal(&mut out, machine, profile).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn idle_profile_shows_system_or_each_cpu() {
        assert_eq!(
            cpu_idleness_json(&machine(), IdleProfile::System),
            Some(value!({"system": 77.0, "unit_mean": 0.0, "unit_stddev": 0.0}))
        );
        assert_eq!(
            cpu_idleness_json(&machine(), IdleProfile::PerCpu),
            Some(value!({
                "system": 77.0, "cpu-0": 56.5, "cpu-1": 97.5, "unit_mean": 0.0, "unit_stddev": 0.0
            }))
        );
        let unit = "  unit work: mean=0.00us, stddev=0.00\n";
        let all = "\nCPU idleness:\n  system: 77.00%\n";
        assert_eq!(
            text(&machine(), IdleProfile::System),
            format!("{all}{unit}")
        );
        assert_eq!(
            text(&machine(), IdleProfile::PerCpu),
            format!("{all}  percpu: 56.50%, 97.50%\n{unit}")
        );
    }

    #[test]
    fn idle_profile_without_machine_samples_is_empty() {
        let none = MachineSeries::default();
        assert_eq!(cpu_idleness_json(&none, IdleProfile::System), None);
        assert_eq!(text(&none, IdleProfile::PerCpu), "");
    }
}
