//! CPU time of processes.

use anyhow::Result;
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike;
use serde::{Deserialize, Serialize};
use std::ops::Sub;

/// User and system CPU time in microseconds.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
pub(super) struct CpuTime {
    pub(super) user_us: f64,
    pub(super) system_us: f64,
}

impl CpuTime {
    /// CPU time used so far by this process, or by all its children that have ended.
    pub(super) fn measure(who: UsageWho) -> Result<CpuTime> {
        let usage = getrusage(who)?;
        Ok(CpuTime {
            user_us: usage.user_time().num_microseconds() as f64,
            system_us: usage.system_time().num_microseconds() as f64,
        })
    }

    /// Divides the times by a number of I/Os.
    pub(super) fn per(self, ios: f64) -> CpuTime {
        CpuTime {
            user_us: self.user_us / ios,
            system_us: self.system_us / ios,
        }
    }
}

impl Sub for CpuTime {
    type Output = CpuTime;

    fn sub(self, before: CpuTime) -> CpuTime {
        CpuTime {
            user_us: self.user_us - before.user_us,
            system_us: self.system_us - before.system_us,
        }
    }
}
