//! Memory and CPU time of one process, by wait4(2).

use super::super::cpu::CpuTime;
use nix::libc;
use std::io;
use std::mem::MaybeUninit;
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, ExitStatus};

/// Resources that a process has used, with those of its own ended children.
#[derive(Debug, Clone, Copy)]
pub(in crate::bench) struct ChildUsage {
    pub(in crate::bench) status: ExitStatus,
    /// Largest resident memory in KiB. It is at least that of the process that started the child.
    pub(in crate::bench) peak_kib: f64,
    pub(in crate::bench) cpu: CpuTime,
}

impl ChildUsage {
    /// Waits until a child has ended. Its output must not be a pipe.
    pub(in crate::bench) fn wait(child: Child) -> io::Result<ChildUsage> {
        let mut usage = MaybeUninit::<libc::rusage>::zeroed();
        let mut status = 0;
        let pid = child.id() as libc::pid_t;
        drop(child);
        loop {
            // SAFETY: the kernel writes a status and a usage, which live through the call.
            let ended = unsafe { libc::wait4(pid, &raw mut status, 0, usage.as_mut_ptr()) };
            if ended == pid {
                break;
            }
            let error = io::Error::last_os_error();
            if error.kind() != io::ErrorKind::Interrupted {
                return Err(error);
            }
        }
        // SAFETY: zeros are a valid usage, and the kernel has overwritten them.
        let usage = unsafe { usage.assume_init() };
        let micros = |time: libc::timeval| time.tv_sec as f64 * 1e6 + time.tv_usec as f64;
        Ok(ChildUsage {
            status: ExitStatus::from_raw(status),
            peak_kib: usage.ru_maxrss as f64,
            cpu: CpuTime {
                user_us: micros(usage.ru_utime),
                system_us: micros(usage.ru_stime),
            },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    #[test]
    fn ended_child_reports_status_memory_and_time() {
        let mut command = Command::new("sh");
        let child = command
            .args([
                "-c",
                "i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done; exit 3",
            ])
            .spawn()
            .unwrap();
        let usage = ChildUsage::wait(child).unwrap();
        assert_eq!(usage.status.code(), Some(3));
        assert!(usage.peak_kib > 100.0, "{usage:?}");
        assert!(usage.cpu.user_us + usage.cpu.system_us > 0.0, "{usage:?}");
    }
}
