use super::*;
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};

/// An empty directory, removed when dropped.
struct Directory(PathBuf);

impl Directory {
    fn new(name: &str) -> Directory {
        let path = std::env::temp_dir().join(format!("iosonde-out-{name}-{}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        Directory(path)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(&self.0).unwrap();
        let mut names: Vec<String> = entries
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap()
}

#[test]
fn file_is_replaced_at_the_end_and_keeps_its_mode() {
    let directory = Directory::new("replaced");
    let path = directory.path("result");
    fs::write(&path, "old").unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
    let reader = File::open(&path).unwrap();
    let mut output = Output::open(Some(&path)).unwrap();
    output.write("n").unwrap();
    assert_eq!(read(&path), "old");
    output.save("ew").unwrap();
    assert_eq!(read(&path), "new");
    assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o640);
    // A reader that had the old file open reads all of it.
    assert_eq!(io::read_to_string(&reader).unwrap(), "old");
    assert_eq!(directory.names(), ["result"]);
}

#[test]
fn text_for_a_file_is_not_as_narrow_as_the_terminal() {
    let directory = Directory::new("columns");
    let widest = || {
        let text = iosonde_report::text_table::wrapped(&"word ".repeat(60));
        text.lines().map(str::len).max().unwrap()
    };
    iosonde_report::text_table::set_columns(40);
    let path = directory.path("result");
    // Standard output and a file beside it do not widen the report.
    Output::open_report(None).unwrap();
    Output::open(Some(&path)).unwrap();
    assert!(widest() <= 40);
    Output::open_report(Some(&path)).unwrap();
    // The environment of the test may set the width.
    if std::env::var_os("COLUMNS").is_none() {
        assert!(widest() > 70);
    }
}

#[test]
fn document_not_finished_keeps_old_file_and_makes_none() {
    let directory = Directory::new("unfinished");
    let (old, new) = (directory.path("old"), directory.path("new"));
    fs::write(&old, "old").unwrap();
    for path in [&old, &new] {
        let mut output = Output::open(Some(path)).unwrap();
        output.write("half of it").unwrap();
    }
    assert_eq!(read(&old), "old");
    assert_eq!(directory.names(), ["old"]);
}

#[test]
fn links_stay_and_their_target_is_replaced() {
    let directory = Directory::new("links");
    fs::create_dir(directory.path("below")).unwrap();
    symlink("below/second", directory.path("first")).unwrap();
    symlink("file", directory.path("below/second")).unwrap();
    for document in ["made", "replaced"] {
        let output = Output::open(Some(&directory.path("first"))).unwrap();
        output.save(document).unwrap();
        assert_eq!(read(&directory.path("below/file")), document);
    }
    for link in ["first", "below/second"] {
        assert!(directory.path(link).is_symlink());
    }
    symlink("round", directory.path("round")).unwrap();
    assert!(Output::open(Some(&directory.path("round"))).is_err());
}

#[test]
fn fifo_is_written_to() {
    let directory = Directory::new("fifo");
    let path = directory.path("fifo");
    let mode = rustix::fs::Mode::from_raw_mode(0o600);
    rustix::fs::mknodat(rustix::fs::CWD, &path, rustix::fs::FileType::Fifo, mode, 0).unwrap();
    let reader = {
        let path = path.clone();
        std::thread::spawn(move || read(&path))
    };
    let output = Output::open(Some(&path)).unwrap();
    output.save("through it").unwrap();
    assert_eq!(reader.join().unwrap(), "through it");
    assert_eq!(directory.names(), ["fifo"]);
}

#[test]
fn descriptor_of_process_is_appended_to() {
    let directory = Directory::new("descriptor");
    let path = directory.path("redirected");
    fs::write(&path, "before ").unwrap();
    let file = File::options().append(true).open(&path).unwrap();
    let descriptor = {
        use std::os::fd::AsRawFd;
        format!("/dev/fd/{}", file.as_raw_fd())
    };
    let inode = file.metadata().unwrap().ino();
    let output = Output::open(Some(Path::new(&descriptor))).unwrap();
    output.save("behind").unwrap();
    assert_eq!(read(&path), "before behind");
    assert_eq!(fs::metadata(&path).unwrap().ino(), inode);
}

#[test]
fn streamed_file_holds_each_part_at_once() {
    let directory = Directory::new("streamed");
    let path = directory.path("result");
    fs::write(&path, "a longer old one").unwrap();
    let mut output = Output::open(Some(&path)).unwrap();
    output.write("1").unwrap();
    output.stream().unwrap();
    assert_eq!(read(&path), "1");
    output.write("2").unwrap();
    assert_eq!(read(&path), "12");
    output.save("3").unwrap();
    assert_eq!(read(&path), "123");
}

#[test]
fn file_that_cannot_be_renamed_is_overwritten() {
    let directory = Directory::new("overwritten");
    let path = directory.path("result");
    fs::write(&path, "old").unwrap();
    let inode = fs::metadata(&path).unwrap().ino();
    // No name is free beside the file, as in a directory that this user cannot write.
    let pid = std::process::id();
    let taken = |number: u32| directory.path(&format!(".iosonde-output-{pid}-{number}"));
    (0..MOST_NAMES).for_each(|number| drop(File::create(taken(number)).unwrap()));
    let output = Output::open(Some(&path)).unwrap();
    output.save("new").unwrap();
    assert_eq!(read(&path), "new");
    assert_eq!(fs::metadata(&path).unwrap().ino(), inode);
    assert!(Output::open(Some(&directory.path("another"))).is_err());
}

#[test]
fn output_path_not_writable_fails_at_open() {
    let directory = Directory::new("refused");
    assert!(Output::open(Some(&directory.0)).is_err());
    assert!(Output::open(Some(&directory.path("none/result"))).is_err());
    let mut full = Output::open(Some(Path::new("/dev/full"))).unwrap();
    assert!(full.write("x").is_err());
}

#[test]
fn output_text_escapes_control_characters() {
    let directory = Directory::new("hostile");
    let (text, bytes) = (directory.path("text"), directory.path("bytes"));
    let hostile = "a\u{1b}[2J\n\tb\u{9b}";
    Output::open(Some(&text)).unwrap().save(hostile).unwrap();
    assert_eq!(read(&text), "a\\u001b[2J\n\tb\\u009b");
    let output = Output::open(Some(&bytes)).unwrap();
    output.save_unchanged(hostile.as_bytes()).unwrap();
    assert_eq!(read(&bytes), hostile);
}
