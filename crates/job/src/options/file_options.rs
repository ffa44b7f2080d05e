//! Options for the files of a job: names, sizes, layout.

use super::option_value::choice;
use super::{JobBuilder, OptionRow, OptionValue, ValueKind};
use crate::plan::*;
use crate::value::{self, ParsedValue, ValueError};

const U32: i64 = u32::MAX as i64;

/// Rows of the option table.
pub const ROWS: &[OptionRow] = &[
    OptionRow::new(
        "filename",
        ValueKind::List,
        "",
        "The files or devices to work on, separated by colons; a colon in a name is written `\\:`. \
         Given again, also after a global section, it adds files. Names are made up from the job's \
         name unless this is given.",
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
    OptionRow::new(
        "directory",
        ValueKind::List,
        "",
        "Directory of the files. Clones use several directories, separated by colons, in turn.",
        |b, v| {
            b.job.files.directories = value::colons(v.str());
            Ok(())
        },
    ),
    OptionRow::new(
        "filename_format",
        ValueKind::Text,
        "$jobname.$jobnum.$filenum",
        "Format of file names, with $jobname, $jobnum, $filenum and $clientuid.",
        |b, v| {
            b.job.files.filename_format = Some(v.str().to_owned()).filter(|text| !text.is_empty());
            Ok(())
        },
    ),
    OptionRow::new(
        "unique_filename",
        ValueKind::Bool,
        "1",
        "Put the client's address before file names in client/server mode.",
        |_, v| v.bool().map(|_| ()),
    )
    .accepted("iosonde has no client/server mode, so names are unchanged."),
    OptionRow::new(
        "opendir",
        ValueKind::Text,
        "",
        "Work on all files below this directory. Given again it adds the files of another \
         directory, and those of `filename` are used too.",
        |b, v| {
            b.job.files.opendir.push(v.str().to_owned());
            Ok(())
        },
    ),
    OptionRow::unsupported(
        "lockfile",
        ValueKind::Choice(&["none", "exclusive", "readwrite"]),
        "none",
        "Lock files during I/O.",
        "files are not locked",
        "",
    ),
    OptionRow::new(
        "nrfiles",
        ValueKind::Int(0, U32),
        "1",
        "Number of files per clone. No effect with filename.",
        |b, v| {
            b.job.files.nrfiles = v.int(0..=U32)?.max(1) as u32;
            Ok(())
        },
    )
    .aliases(&["nr_files"]),
    OptionRow::new(
        "openfiles",
        ValueKind::Int(0, U32),
        "0",
        "Number of files open at once; 0: all.",
        |b, v| v.u32_to(&mut b.job.files.openfiles, 0),
    ),
    OptionRow::new(
        "file_service_type",
        ValueKind::Words(
            &[
                "roundrobin",
                "sequential",
                "random",
                "zipf",
                "pareto",
                "normal",
                "gauss",
            ],
            ", perhaps with :N or :parameter",
        ),
        "roundrobin",
        "Which file the next I/O goes to: roundrobin, sequential or random, each with :N for N \
         I/Os at a time, or zipf, pareto and normal (gauss) with their parameter.",
        apply_file_service,
    ),
    OptionRow::new(
        "size",
        ValueKind::Extent,
        "",
        "Total size of the files of one clone, or a percentage of existing files. Optional for \
         files that exist.",
        |b, v| {
            let extent = value::extent(v.str(), b.bytes)?;
            match extent {
                BytesOrPercent::Percent(percent) if percent > 100.0 => {
                    Err(ValueError::new("a size cannot be more than 100%")
                        .help("`io_size` may be more than `size`"))
                }
                _ => {
                    // For fio, 0 means "not given".
                    b.job.files.size =
                        Some(extent).filter(|extent| *extent != BytesOrPercent::Bytes(0));
                    Ok(())
                }
            }
        },
    ),
    OptionRow::new(
        "io_size",
        ValueKind::Extent,
        "",
        "Bytes to transfer, may differ from size; or a percentage of size.",
        |b, v| {
            b.job.files.io_size = Some(value::extent(v.str(), b.bytes)?)
                .filter(|extent| *extent != BytesOrPercent::Bytes(0));
            Ok(())
        },
    )
    .aliases(&["io_limit"]),
    OptionRow::new(
        "filesize",
        ValueKind::SizeRange,
        "",
        "Size of each file, or a range of random sizes. size is then only the number of bytes to \
         transfer.",
        |b, v| {
            let base = b.bytes;
            let range = value::list::range(v.str(), |part| value::bytes(part, base))?;
            b.job.files.filesize = Some(range).filter(|(_, high)| *high > 0);
            Ok(())
        },
    ),
    OptionRow::new(
        "offset",
        ValueKind::Extent,
        "0",
        "Start of the job's region in each file. A percentage is relative to the existing size, \
         which is 0 for a new file.",
        |b, v| v.extent_to(&mut b.job.files.offset, b.bytes),
    )
    .aliases(&["fileoffset"]),
    OptionRow::new(
        "offset_increment",
        ValueKind::Extent,
        "0",
        "Increment of the offset per clone, so that clones use adjacent regions.",
        |b, v| v.extent_to(&mut b.job.files.offset_increment, b.bytes),
    ),
    OptionRow::new(
        "offset_align",
        ValueKind::Size,
        "0",
        "Alignment of an offset given in per cent; 0: the smallest block size.",
        |b, v| v.bytes_to(&mut b.job.files.offset_align, b.bytes),
    ),
    OptionRow::new(
        "fill_device",
        ValueKind::Bool,
        "0",
        "Write until the device is full, which then ends the job without an error.",
        |b, v| v.bool_to(&mut b.job.files.fill_device),
    )
    .aliases(&["fill_fs"]),
    OptionRow::new(
        "fallocate",
        ValueKind::Choice(&["none", "native", "posix", "keep", "truncate", "0", "1"]),
        "native",
        "Method of reserving space before a file is laid out. The file is always written before \
         reads are measured.",
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
    OptionRow::new(
        "fadvise_hint",
        ValueKind::Choice(&["0", "1", "random", "sequential"]),
        "1",
        "Access pattern passed to posix_fadvise() for buffered I/O: none, that of rw, random or \
         sequential.",
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
    OptionRow::new(
        "create_serialize",
        ValueKind::Bool,
        "1",
        "Lay out the files of one job after those of another.",
        |b, v| v.bool_to(&mut b.job.files.create_serialize),
    )
    .accepted("Files are laid out before any job begins, one after the other."),
    OptionRow::new(
        "create_fsync",
        ValueKind::Bool,
        "1",
        "Call fsync on files after laying them out.",
        |b, v| v.bool_to(&mut b.job.files.create_fsync),
    ),
    OptionRow::new(
        "create_on_open",
        ValueKind::Bool,
        "0",
        "Do not lay out files before the job; create them when they are opened.",
        |b, v| v.bool_to(&mut b.job.files.create_on_open),
    ),
    OptionRow::new(
        "create_only",
        ValueKind::Bool,
        "0",
        "Lay out the files and stop.",
        |b, v| v.bool_to(&mut b.job.files.create_only),
    ),
    OptionRow::new(
        "overwrite",
        ValueKind::Bool,
        "0",
        "Lay files out in full before the job writes them, so that writes hit allocated blocks.",
        |b, v| v.bool_to(&mut b.job.files.overwrite),
    ),
    OptionRow::new(
        "file_append",
        ValueKind::Bool,
        "0",
        "Append to each file.",
        |b, v| v.bool_to(&mut b.job.files.file_append),
    ),
    OptionRow::new(
        "pre_read",
        ValueKind::Bool,
        "0",
        "Read the files into the page cache before the job. The results are then those of the \
         cache.",
        |b, v| v.bool_to(&mut b.job.files.pre_read),
    ),
    OptionRow::new(
        "invalidate",
        ValueKind::Bool,
        "1",
        "Drop the files' pages from the page cache whenever a buffered job restarts: before each \
         loop, each pass of io_size or time_based, and verification. Before verification iosonde \
         flushes the files; fio drops only clean pages.",
        |b, v| v.bool_to(&mut b.job.files.invalidate),
    ),
    OptionRow::new(
        "unlink",
        ValueKind::Bool,
        "0",
        "Remove the files after the job.",
        |b, v| v.bool_to(&mut b.job.files.unlink),
    ),
    OptionRow::new(
        "unlink_each_loop",
        ValueKind::Bool,
        "0",
        "Remove the files between loops of the job. As in fio, the files of the last loop remain.",
        |b, v| v.bool_to(&mut b.job.files.unlink_each_loop),
    ),
    OptionRow::new(
        "allow_file_create",
        ValueKind::Bool,
        "1",
        "Create files that do not exist. 0: a missing file is an error.",
        |b, v| v.bool_to(&mut b.job.files.allow_file_create),
    ),
    OptionRow::new(
        "allow_mounted_write",
        ValueKind::Bool,
        "0",
        "Consent to write to a block device that is mounted or otherwise in use.",
        |b, v| v.bool_to(&mut b.job.files.allow_mounted_write),
    ),
];

fn apply_file_service(b: &mut JobBuilder, v: &OptionValue<'_>) -> ParsedValue<()> {
    let text = v.str();
    let (word, parameter) = match text.split_once(':') {
        Some((word, parameter)) => (word, Some(parameter)),
        None => (text, None),
    };
    let every = || match parameter {
        Some(number) => Ok(super::option_value::bounded(number, &(1..=U32))? as u32),
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
