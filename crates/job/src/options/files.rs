//! Options for the files of a job: names, sizes, layout.

use super::given::choice;
use super::{Builder, Given, Kind, Row};
use crate::plan::*;
use crate::value::{self, Parsed, ValueError};

const U32: i64 = u32::MAX as i64;

/// Rows of the option table.
pub const ROWS: &[Row] = &[
    Row::new(
        "filename",
        Kind::List,
        "",
        "The files or devices to work on, separated by colons; a colon in a name is written `\\:`. Given again, also \
         after a global section, it adds files. Names are made up from the job's name unless this is given.",
        |b, v| {
            // As in fio, blanks around the list are ignored.
            let names = value::colons(v.str().trim());
            if names.is_empty() {
                return Err(ValueError::new("no file is named"));
            }
            b.job.files.filenames.extend(names);
            Ok(())
        },
    ),
    Row::new(
        "directory",
        Kind::List,
        "",
        "Where files are; several directories are separated by colons, and clones take them in turn.",
        |b, v| {
            b.job.files.directories = value::colons(v.str());
            Ok(())
        },
    ),
    Row::new(
        "filename_format",
        Kind::Text,
        "$jobname.$jobnum.$filenum",
        "How names are made up: $jobname, $jobnum, $filenum and $clientuid stand for themselves.",
        |b, v| {
            b.job.files.filename_format = Some(v.str().to_owned()).filter(|text| !text.is_empty());
            Ok(())
        },
    ),
    Row::new(
        "unique_filename",
        Kind::Bool,
        "1",
        "Put the client's address before file names in client/server mode.",
        |_, v| v.bool().map(|_| ()),
    )
    .accepted("There is no client/server mode, so that names stay as they are."),
    Row::new(
        "opendir",
        Kind::Text,
        "",
        "Work on all files below this directory. Given again it adds the files of another directory, and those of \
         `filename` are used too.",
        |b, v| {
            b.job.files.opendir.push(v.str().to_owned());
            Ok(())
        },
    ),
    Row::unsupported(
        "lockfile",
        Kind::Choice(&["none", "exclusive", "readwrite"]),
        "none",
        "Lock files while working on them.",
        "files are not locked",
        "",
    ),
    Row::new(
        "nrfiles",
        Kind::Int(0, U32),
        "1",
        "Files of each clone. Means nothing when filename is given.",
        |b, v| {
            b.job.files.nrfiles = v.int(0..=U32)?.max(1) as u32;
            Ok(())
        },
    )
    .aliases(&["nr_files"]),
    Row::new(
        "openfiles",
        Kind::Int(0, U32),
        "0",
        "Files that are open at once; 0 is all.",
        |b, v| v.u32_to(&mut b.job.files.openfiles, 0),
    ),
    Row::new(
        "file_service_type",
        Kind::Words(
            &["roundrobin", "sequential", "random", "zipf", "pareto", "normal", "gauss"],
            ", perhaps with :N or :parameter",
        ),
        "roundrobin",
        "Which file the next I/O goes to: roundrobin, sequential or random, each with :N for N I/Os at a time, or \
         zipf, pareto and normal (gauss) with their parameter.",
        apply_file_service,
    ),
    Row::new(
        "size",
        Kind::Extent,
        "",
        "Bytes in all files of one clone together, or per cent of what exists. Files that exist need none.",
        |b, v| {
            let extent = value::extent(v.str(), b.bytes)?;
            match extent {
                Extent::Percent(percent) if percent > 100.0 => {
                    Err(ValueError::new("a size cannot be more than 100%")
                        .help("`io_size` may be more than `size`"))
                }
                _ => {
                    // For fio, 0 means "not given".
                    b.job.files.size = Some(extent).filter(|extent| *extent != Extent::Bytes(0));
                    Ok(())
                }
            }
        },
    ),
    Row::new(
        "io_size",
        Kind::Extent,
        "",
        "Bytes to move, more or less than size, or per cent of it.",
        |b, v| {
            b.job.files.io_size =
                Some(value::extent(v.str(), b.bytes)?).filter(|extent| *extent != Extent::Bytes(0));
            Ok(())
        },
    )
    .aliases(&["io_limit"]),
    Row::new(
        "filesize",
        Kind::SizeRange,
        "",
        "Size of each file, or a range to draw it from. size then only says how much is moved.",
        |b, v| {
            let base = b.bytes;
            let range = value::list::range(v.str(), |part| value::bytes(part, base))?;
            b.job.files.filesize = Some(range).filter(|(_, high)| *high > 0);
            Ok(())
        },
    ),
    Row::new(
        "offset",
        Kind::Extent,
        "0",
        "Where in each file the job's region starts. A share is one of what the file holds: nothing, of a new one.",
        |b, v| v.extent_to(&mut b.job.files.offset, b.bytes),
    )
    .aliases(&["fileoffset"]),
    Row::new(
        "offset_increment",
        Kind::Extent,
        "0",
        "Added to the offset once for each clone, so that clones work side by side.",
        |b, v| v.extent_to(&mut b.job.files.offset_increment, b.bytes),
    ),
    Row::new(
        "offset_align",
        Kind::Size,
        "0",
        "Alignment of an offset given in per cent; 0 is the smallest block size.",
        |b, v| v.bytes_to(&mut b.job.files.offset_align, b.bytes),
    ),
    Row::new(
        "fill_device",
        Kind::Bool,
        "0",
        "Write until the device is full; that then is the end, not an error.",
        |b, v| v.bool_to(&mut b.job.files.fill_device),
    )
    .aliases(&["fill_fs"]),
    Row::new(
        "fallocate",
        Kind::Choice(&["none", "native", "posix", "keep", "truncate", "0", "1"]),
        "native",
        "How space is reserved before a file is laid out. Data are written in any case before reads are timed.",
        |b, v| {
            v.choice_to(
                &mut b.job.files.fallocate,
                &[
                    ("none", Fallocate::None),
                    ("native", Fallocate::Native),
                    ("posix", Fallocate::Posix),
                    ("keep", Fallocate::Keep),
                    ("truncate", Fallocate::Truncate),
                    ("0", Fallocate::None),
                    ("1", Fallocate::Posix),
                ],
            )
        },
    ),
    Row::new(
        "fadvise_hint",
        Kind::Choice(&["0", "1", "random", "sequential"]),
        "1",
        "What the kernel is told about the order of buffered I/O: nothing, what rw says, random or sequential.",
        |b, v| {
            v.choice_to(
                &mut b.job.files.fadvise,
                &[
                    ("0", Fadvise::None),
                    ("1", Fadvise::Pattern),
                    ("random", Fadvise::Random),
                    ("sequential", Fadvise::Sequential),
                ],
            )
        },
    ),
    Row::new(
        "create_serialize",
        Kind::Bool,
        "1",
        "Lay out the files of one job after those of another.",
        |b, v| v.bool_to(&mut b.job.files.create_serialize),
    )
    .accepted("Files are laid out before any job begins, one after the other."),
    Row::new(
        "create_fsync",
        Kind::Bool,
        "1",
        "Call fsync on files after laying them out.",
        |b, v| v.bool_to(&mut b.job.files.create_fsync),
    ),
    Row::new(
        "create_on_open",
        Kind::Bool,
        "0",
        "Do not lay out files before the job; create them when they are opened.",
        |b, v| v.bool_to(&mut b.job.files.create_on_open),
    ),
    Row::new(
        "create_only",
        Kind::Bool,
        "0",
        "Lay out the files and stop.",
        |b, v| v.bool_to(&mut b.job.files.create_only),
    ),
    Row::new(
        "overwrite",
        Kind::Bool,
        "0",
        "Lay files out in full before they are written, so that writes meet allocated blocks.",
        |b, v| v.bool_to(&mut b.job.files.overwrite),
    ),
    Row::new(
        "file_append",
        Kind::Bool,
        "0",
        "Work behind the end of each file.",
        |b, v| v.bool_to(&mut b.job.files.file_append),
    ),
    Row::new(
        "pre_read",
        Kind::Bool,
        "0",
        "Read the files into the cache before the job. Results then are those of the cache.",
        |b, v| v.bool_to(&mut b.job.files.pre_read),
    ),
    Row::new(
        "invalidate",
        Kind::Bool,
        "1",
        "Drop the files' pages from the cache each time a buffered job starts over: before each loop, each pass of io_size or \
         time_based, and verification. Before verification iosonde flushes the files; fio drops only what is written back already.",
        |b, v| v.bool_to(&mut b.job.files.invalidate),
    ),
    Row::new(
        "unlink",
        Kind::Bool,
        "0",
        "Remove files when the job is done.",
        |b, v| v.bool_to(&mut b.job.files.unlink),
    ),
    Row::new(
        "unlink_each_loop",
        Kind::Bool,
        "0",
        "Remove files between the loops of the job. As in fio, those of the last loop stay.",
        |b, v| v.bool_to(&mut b.job.files.unlink_each_loop),
    ),
    Row::new(
        "allow_file_create",
        Kind::Bool,
        "1",
        "Create files that do not exist; at 0 that is an error.",
        |b, v| v.bool_to(&mut b.job.files.allow_file_create),
    ),
    Row::new(
        "allow_mounted_write",
        Kind::Bool,
        "0",
        "Consent to write to a block device that is mounted or otherwise in use.",
        |b, v| v.bool_to(&mut b.job.files.allow_mounted_write),
    ),
];

fn apply_file_service(b: &mut Builder, v: &Given<'_>) -> Parsed<()> {
    let text = v.str();
    let (word, parameter) = match text.split_once(':') {
        Some((word, parameter)) => (word, Some(parameter)),
        None => (text, None),
    };
    let every = || match parameter {
        Some(number) => Ok(super::given::bounded(number, &(1..=U32))? as u32),
        None => Ok(1),
    };
    let skew = |default: f64| parameter.map_or(Ok(default), value::float);
    let words = [
        "roundrobin",
        "sequential",
        "random",
        "zipf",
        "pareto",
        "normal",
        "gauss",
    ];
    let (kind, every) = match word {
        "roundrobin" => (FileServiceKind::RoundRobin, every()?),
        "sequential" => (FileServiceKind::Sequential, every()?),
        "random" => (FileServiceKind::Random, every()?),
        "zipf" => (FileServiceKind::Zipf(skew(1.1)?), 1),
        "pareto" => (FileServiceKind::Pareto(skew(0.2)?), 1),
        "normal" | "gauss" => (FileServiceKind::Gauss(skew(0.0)?), 1),
        other => return choice(other, &words.map(|word| (word, ()))),
    };
    b.job.files.file_service = FileService { kind, every };
    Ok(())
}
