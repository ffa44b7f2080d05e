//! Errors of a Ceph cluster and their texts.

use crate::worker::io_failure::errno_name;
use iosonde_result::session::RunError;

/// Reason why an operation on a cluster failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CephError {
    /// A library is missing or has another version.
    #[error("{library} cannot be loaded: {reason}")]
    Library {
        /// File name of the library.
        library: &'static str,
        /// Debian package of the library.
        package: &'static str,
        /// Message of the loader.
        reason: String,
    },
    /// A call failed.
    #[error("cannot {doing}: {}{}", described(*.errno), also(.said))]
    Call {
        /// Operation that failed, phrased to follow "cannot".
        doing: String,
        /// errno.
        errno: i32,
        /// Message of the cluster, or empty.
        said: String,
    },
    /// A name that contains a zero byte.
    #[error("the name {0:?} cannot be used: it holds a zero byte")]
    Text(String),
}

fn described(errno: i32) -> String {
    let text = std::io::Error::from_raw_os_error(errno).to_string();
    let text = text.split(" (os error").next().unwrap_or_default();
    format!("{text} ({})", errno_name(errno))
}

fn also(said: &str) -> String {
    match said.trim() {
        "" => String::new(),
        said => format!("; it said: {said}"),
    }
}

impl CephError {
    /// errno of a failed call. `None` for other errors.
    pub fn errno(&self) -> Option<i32> {
        match self {
            CephError::Call { errno, .. } => Some(*errno),
            _ => None,
        }
    }

    /// Action for the user.
    pub fn remedy(&self) -> String {
        match self {
            CephError::Library { package, .. } => {
                format!(
                    "install the package that has it (Debian, Ubuntu: apt-get install {package})"
                )
            }
            CephError::Text(_) => "name it without".to_owned(),
            CephError::Call { doing, errno, .. } => of_call(doing, *errno).to_owned(),
        }
    }

    /// Converts to the error of a run on this target, e.g. `rados://pool`.
    pub fn on(&self, target: &str) -> RunError {
        match self {
            CephError::Library { .. } => RunError::Unsupported {
                problem: self.to_string(),
                remedy: self.remedy(),
            },
            _ => RunError::Target {
                path: target.to_owned(),
                problem: self.to_string(),
                remedy: self.remedy(),
            },
        }
    }
}

fn of_call(doing: &str, errno: i32) -> &'static str {
    let about = |words: &str| doing.contains(words);
    match errno {
        libc::ETIMEDOUT if about("connect") => {
            "no monitor answered: check `mon host` in the configuration (conf=, --ceph-conf, CEPH_CONF) and the network"
        }
        libc::ETIMEDOUT => {
            "the cluster did not answer in time: see `ceph -s`, or allow more with ceph_timeout= (--ceph-timeout)"
        }
        libc::EACCES | libc::EPERM => {
            "the cluster refuses this client: check its name (clientname=, --ceph-client), its key (ceph_keyring=, \
             --ceph-keyring) and its capabilities (ceph auth get)"
        }
        libc::ENOENT if about("pool") => {
            "list the pools with `ceph osd pool ls`, and name one of them"
        }
        libc::ENOENT if about("image") => "list the images with `rbd ls`, and name one of them",
        libc::ENOENT | libc::EINVAL if about("connect") || about("read ") => {
            "check the configuration file (conf=, --ceph-conf, CEPH_CONF), and that the client's key is in a keyring it names \
             (ceph_keyring=, --ceph-keyring)"
        }
        libc::EROFS => {
            "something else has the image for itself: see `rbd status` and `rbd lock ls`"
        }
        libc::ENOSPC | libc::EDQUOT => {
            "the pool is full: see `ceph df`, and free some space or use a smaller size="
        }
        _ => "see `ceph -s` and the cluster's log",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_say_cause_and_remedy() {
        let call = |doing: &str, errno| CephError::Call {
            doing: doing.to_owned(),
            errno,
            said: String::new(),
        };
        let wrong_pool = call("open the pool x", libc::ENOENT);
        assert_eq!(
            wrong_pool.to_string(),
            "cannot open the pool x: No such file or directory (ENOENT)"
        );
        assert!(wrong_pool.remedy().contains("ceph osd pool ls"));
        let silent = call("connect to the Ceph cluster", libc::ETIMEDOUT);
        assert!(silent.remedy().contains("mon host"));
        assert!(
            matches!(silent.on("rados://x"), RunError::Target { path, .. } if path == "rados://x")
        );
    }

    #[test]
    fn a_missing_library_names_its_package() {
        let missing = crate::sys::rados::missing_library();
        assert!(
            missing.to_string().contains("libiosonde-none.so.9"),
            "{missing}"
        );
        assert!(missing.remedy().contains("apt-get install librados2"));
        assert!(matches!(
            missing.on("rados://x"),
            RunError::Unsupported { .. }
        ));
    }
}
