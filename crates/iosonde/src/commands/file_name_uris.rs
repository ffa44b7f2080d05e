//! File names of jobs that begin as a URI of Ceph: refused if they would be files of this machine.

use super::ceph;
use super::requested_image::requested_image;
use crate::failure::CommandError;
use iosonde_job::plan::{Engine, Job};
use iosonde_job::target_scheme::is_ceph_name;
use iosonde_job::{TargetScheme, quote_shell_word};

/// Refuses file names that are malformed URIs of Ceph, and URIs that fio's list of names splits at
/// their colon.
pub(super) fn refuse_broken_uris<'j>(
    jobs: impl IntoIterator<Item = &'j Job>,
) -> Result<(), CommandError> {
    let has_files = |job: &&Job| !matches!(job.io.engine, Engine::Null | Engine::Sim);
    for job in jobs.into_iter().filter(has_files) {
        let files = &job.files;
        for name in files.names() {
            check_form(name)?;
        }
        let pairs = files.filenames.windows(2);
        for pair in pairs.filter(|pair| !is_ceph_name(&pair[0])) {
            refuse_split_uri(&pair.join(":"))?;
        }
    }
    Ok(())
}

/// Refuses a URI whose parts before and after the colon are two names.
fn refuse_split_uri(uri: &str) -> Result<(), CommandError> {
    if !is_ceph_name(uri) {
        return Ok(());
    }
    check_form(uri)?;
    Err(CommandError::usage(
        format!("filename={uri} names two files: as in fio, a colon separates file names"),
        "name the pool or image in --target (rados://POOL, rbd://POOL/IMAGE), or write `\\:` for \
         the colon",
    ))
}

/// Refuses a URI of Ceph that names neither a file of a pool nor an image.
fn check_form(name: &str) -> Result<(), CommandError> {
    if !matches!(requested_image(name), Ok(None)) {
        return Err(CommandError::usage(
            format!("invalid file name `{name}`: only a target makes an image"),
            format!(
                "leave out the file name, and use --target={}",
                quote_shell_word(name)
            ),
        ));
    }
    let Some(rest) = TargetScheme::Rados.strip(name) else {
        return ceph::target(name).map(|_| ());
    };
    let is_file = |(pool, file): (&str, &str)| !pool.is_empty() && !file.is_empty();
    match rest.split_once('/').is_some_and(is_file) && !rest.ends_with('/') {
        true => Ok(()),
        false => Err(CommandError::usage(
            format!(
                "invalid file name `{name}`: use rados://POOL/FILE or rados://POOL/NAMESPACE/FILE"
            ),
            match rest.split('/').next() {
                None | Some("") => ceph::invalid_target_remedy(name),
                Some(pool) => format!(
                    "leave out the file name, and use --target={}",
                    quote_shell_word(&format!("rados://{pool}"))
                ),
            },
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use iosonde_job::env::FakeEnv;
    use iosonde_job::parse;
    use std::ffi::OsString;

    /// The refusal of a job with these options, which are separated by spaces.
    fn refusal(options: &str) -> Option<String> {
        let line = format!("--name=a --size=1m {options}");
        let words: Vec<OsString> = line.split(' ').map(OsString::from).collect();
        let parsed = parse(&words, &FakeEnv::new()).unwrap();
        let failure = refuse_broken_uris(&parsed.plan.jobs).err()?;
        assert_eq!(failure.status(), 2, "{options}");
        Some(failure.text(false))
    }

    #[test]
    fn malformed_uri_of_a_file_names_the_form_of_a_target() {
        for (option, name, form) in [
            (
                "--filename=rbd://p/a/b/c",
                "rbd://p/a/b/c",
                "rbd://POOL/IMAGE",
            ),
            (
                "--filename=rbd\\://p/a/b/c",
                "rbd://p/a/b/c",
                "rbd://POOL/IMAGE",
            ),
            ("--filename_format=rbd://p", "rbd://p", "rbd://POOL/IMAGE"),
            ("--filename=x:rados://p", "rados://p", "rados://POOL/FILE"),
            (
                "--filename=rados\\://p/ns/",
                "rados://p/ns/",
                "rados://POOL/FILE",
            ),
        ] {
            let text = refusal(option).expect(option);
            assert!(
                text.contains(name) && text.contains(form),
                "{option}: {text}"
            );
        }
    }

    #[test]
    fn pool_as_a_file_name_is_a_target_in_the_remedy() {
        for (option, help) in [
            ("--filename=rados\\://p/ns/", "and use --target=rados://p"),
            ("--filename=rados\\://", "`ceph osd pool ls` lists"),
            ("--filename_format=rbd://p", "`rbd ls p` lists"),
        ] {
            let text = refusal(option).expect(option);
            assert!(text.ends_with(help), "{option}: {text}");
        }
    }

    #[test]
    fn uri_with_an_unescaped_colon_is_refused() {
        for uri in ["rbd://p/i", "rados://p/f"] {
            let text = refusal(&format!("--filename={uri}")).expect(uri);
            let problem = format!("filename={uri} names two files");
            assert!(
                text.contains(&problem) && text.contains("--target"),
                "{text}"
            );
        }
    }

    #[test]
    fn image_to_make_as_a_file_name_is_refused() {
        for (option, name) in [
            ("--filename=rbd\\://p/?size=1g", "rbd://p/?size=1g"),
            ("--filename=rbd://p/?size=1g", "rbd://p/?size=1g"),
            ("--filename=rbd\\://p/ns/?size=x", "rbd://p/ns/?size=x"),
            ("--filename_format=rbd://p/?size=1g", "rbd://p/?size=1g"),
        ] {
            let text = refusal(option).expect(option);
            let help = format!("--target='{name}'");
            let problem = format!("invalid file name `{name}`");
            assert!(text.contains(&problem) && text.contains(&help), "{text}");
        }
    }

    #[test]
    fn format_that_other_names_override_is_not_checked() {
        let format = "--filename_format=rbd://p";
        for options in ["--opendir=/data", "--filename=x", "--ioengine=null"] {
            assert_eq!(refusal(&format!("{options} {format}")), None, "{options}");
        }
        assert!(refusal(format).is_some());
        let named = "--opendir=/data --filename=rbd\\://p";
        assert!(refusal(named).is_some(), "opendir adds to filename");
    }

    #[test]
    fn uris_and_local_names_are_accepted() {
        for option in [
            "--filename=rbd\\://p/ns/i@s",
            "--filename=rados\\://p/f:rados\\://p/g:x",
            "--filename_format=rados://p/ns/$jobname",
            "--filename=a:b://c",
            "--filename=/rbd://p",
            "--ioengine=null",
        ] {
            assert_eq!(refusal(option), None, "{option}");
        }
    }
}
