//! Names of error numbers, as `ignore_error` takes them.

use super::{Parsed, ValueError};

/// Linux' error numbers from 1 on, in order; both names where there are two.
const NAMES: &[&str] = &[
    "EPERM", "ENOENT", "ESRCH", "EINTR", "EIO", "ENXIO", "E2BIG", "ENOEXEC", "EBADF", "ECHILD",
    "EAGAIN", "ENOMEM", "EACCES", "EFAULT", "ENOTBLK", "EBUSY", "EEXIST", "EXDEV", "ENODEV",
    "ENOTDIR", "EISDIR", "EINVAL", "ENFILE", "EMFILE", "ENOTTY", "ETXTBSY", "EFBIG", "ENOSPC",
    "ESPIPE", "EROFS", "EMLINK", "EPIPE", "EDOM", "ERANGE",
];

/// Those beyond 34 that storage gives.
const LATER: &[(&str, i32)] = &[
    ("EWOULDBLOCK", 11),
    ("EDEADLK", 35),
    ("ENAMETOOLONG", 36),
    ("ENOSYS", 38),
    ("ENODATA", 61),
    ("ETIME", 62),
    ("ENOLINK", 67),
    ("EPROTO", 71),
    ("EBADMSG", 74),
    ("EOVERFLOW", 75),
    ("EILSEQ", 84),
    ("EOPNOTSUPP", 95),
    ("ENOBUFS", 105),
    ("ETIMEDOUT", 110),
    ("EHOSTDOWN", 112),
    ("EHOSTUNREACH", 113),
    ("EALREADY", 114),
    ("EINPROGRESS", 115),
    ("ESTALE", 116),
    ("EUCLEAN", 117),
    ("EREMOTEIO", 121),
    ("EDQUOT", 122),
    ("ENOMEDIUM", 123),
    ("EMEDIUMTYPE", 124),
    ("ECANCELED", 125),
];

/// An error number from its name or its digits.
pub fn errno(text: &str) -> Parsed<i32> {
    if let Ok(number) = text.parse::<i32>() {
        return match number {
            1..=4095 => Ok(number),
            _ => Err(ValueError::new(format!("{number} is not an error number"))),
        };
    }
    let early = NAMES.iter().position(|name| *name == text);
    let later = || LATER.iter().find(|(name, _)| *name == text);
    early
        .map(|at| at as i32 + 1)
        .or_else(|| later().map(|(_, number)| *number))
        .ok_or_else(|| {
            ValueError::new(format!("`{text}` is not the name of an error"))
                .help("write a name such as EIO or ENOSPC, or its number")
        })
}

/// `READ,WRITE,VERIFY` lists of errors, each separated by colons.
pub fn errno_lists(text: &str) -> Parsed<[Vec<i32>; 3]> {
    let mut lists = [Vec::new(), Vec::new(), Vec::new()];
    let fields: Vec<&str> = text.split(',').collect();
    if fields.len() > 3 {
        return Err(ValueError::new("there are more than three lists")
            .help("give the errors of reads, of writes and of verification"));
    }
    for (list, field) in lists.iter_mut().zip(fields) {
        for name in field.split(':').filter(|name| !name.is_empty()) {
            list.push(errno(name.trim()).map_err(|error| error.within(text, name.trim()))?);
        }
    }
    Ok(lists)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_numbers() {
        assert_eq!(errno("EIO"), Ok(5));
        assert_eq!(errno("ERANGE"), Ok(34));
        assert_eq!(errno("122"), Ok(122));
        assert!(errno("EWHAT").is_err());
        assert_eq!(
            errno_lists("EAGAIN,ENOSPC:122"),
            Ok([vec![11], vec![28, 122], vec![]])
        );
        assert_eq!(errno_lists(",EIO"), Ok([vec![], vec![5], vec![]]));
    }
}
