//! fio's defaults for all fields of a job.

use crate::plan::*;

/// fio's default of `percentile_list`.
pub const PERCENTILES: [f64; 17] = [
    1.0, 5.0, 10.0, 20.0, 30.0, 40.0, 50.0, 60.0, 70.0, 80.0, 90.0, 95.0, 99.0, 99.5, 99.9, 99.95,
    99.99,
];

const MS: u64 = 1_000_000;

impl Job {
    /// Makes a job of this name with fio's defaults: sequential reads of 4 KiB with `psync`.
    pub fn new(name: impl Into<String>) -> Self {
        Job {
            name: name.into(),
            description: None,
            numjobs: 1,
            groupid: 0,
            given: Vec::new(),
            files: JobFiles::default(),
            workload: Workload::default(),
            io: IoMethod::default(),
            schedule: Schedule::default(),
            measure: MeasureOptions::default(),
            errors: ErrorPolicy::default(),
            verify: None,
            replay: None,
        }
    }
}

impl Default for JobFiles {
    fn default() -> Self {
        JobFiles {
            filenames: Vec::new(),
            directories: Vec::new(),
            filename_format: None,
            section: None,
            opendir: Vec::new(),
            nrfiles: 1,
            openfiles: 0,
            file_service: FileService {
                kind: FileServiceKind::RoundRobin,
                every: 1,
            },
            filesize: None,
            size: None,
            io_size: None,
            offset: BytesOrPercent::Bytes(0),
            offset_increment: BytesOrPercent::Bytes(0),
            offset_align: 0,
            fill_device: false,
            fallocate: Fallocate::Native,
            create_serialize: true,
            create_fsync: true,
            create_on_open: false,
            create_only: false,
            overwrite: false,
            file_append: false,
            pre_read: false,
            invalidate: true,
            unlink: false,
            unlink_each_loop: false,
            allow_file_create: true,
            allow_mounted_write: false,
            fadvise: Fadvise::Pattern,
        }
    }
}

impl Default for Workload {
    fn default() -> Self {
        Workload {
            rw: ReadWrite {
                mode: ReadWriteMode::Read,
                random: false,
            },
            sequencer: Sequencer {
                every: 1,
                skip_bytes: 0,
                kind: SequencerKind::Sequential,
            },
            block_size: PerDirection::from_value(BlockSize::Fixed(4096)),
            block_align: PerDirection::from_value(0),
            bs_unaligned: false,
            bs_is_seq_rand: false,
            rwmix_read_percent: 50,
            percentage_random: PerDirection::from_value(100),
            distribution: Distribution::Random,
            random_map: RandomMap::Exact,
            random_generator: RandomGenerator::Tausworthe,
            randrepeat: true,
            allrandrepeat: false,
            randseed: None,
            number_ios: None,
            fsync_every: 0,
            fdatasync_every: 0,
            sync_file_range: None,
            end_fsync: false,
            fsync_on_close: false,
            zones: None,
            buffers: Buffers::default(),
        }
    }
}

impl Default for Buffers {
    fn default() -> Self {
        Buffers {
            fill: BufferFill::Scramble,
            compress_percent: 0,
            compress_chunk_bytes: 512,
            dedupe_percent: 0,
            dedupe_working_set_percent: None,
            dedupe_global: false,
        }
    }
}

impl Default for IoMethod {
    fn default() -> Self {
        IoMethod {
            engine: Engine::Psync,
            iodepth: 1,
            batch_submit: None,
            batch_complete_min: 1,
            batch_complete_max: None,
            iodepth_low: None,
            serialize_overlap: false,
            offload: false,
            direct: false,
            sync: SyncMode::None,
            uring: UringOptions::default(),
            nowait: false,
            uncached: false,
            atomic: false,
            cmdprio_percent: PerDirection::from_value(0),
            cmdprio: PerDirection::from_value(IoPriority { class: 1, level: 0 }),
            cmdprio_split: None,
            hipri_percent: 100,
            thread: false,
            nice: None,
            ioprio: None,
            cpus_allowed: None,
            cpus_split: false,
            numa_cpu_nodes: None,
            numa_mem_policy: None,
            mem: Memory::Malloc,
            mem_align_bytes: 0,
            hugepage_bytes: 2 << 20,
            lockmem_bytes: 0,
            write_hint: None,
            scheduler: None,
            uid: None,
            gid: None,
            sim: None,
            ceph: None,
        }
    }
}

impl Default for Schedule {
    fn default() -> Self {
        Schedule {
            stonewall: false,
            wait_for: None,
            exec_prerun: None,
            exec_postrun: None,
            startdelay_ns: (0, 0),
            runtime_ns: 0,
            time_based: false,
            ramp_time_ns: 0,
            loops: 1,
            exitall: None,
            exitall_on_error: false,
            thinktime: None,
            rate_bytes: PerDirection::from_value(None),
            rate_min_bytes: PerDirection::from_value(None),
            rate_iops: PerDirection::from_value(None),
            rate_iops_min: PerDirection::from_value(None),
            rate_poisson: false,
            rate_ignore_thinktime: false,
            rate_cycle_ns: 1000 * MS,
            latency_target: None,
            max_latency_ns: PerDirection::from_value(None),
            steady_state: None,
            flow: None,
            neighbour: false,
        }
    }
}

impl Default for MeasureOptions {
    fn default() -> Self {
        MeasureOptions {
            group_reporting: false,
            slat: true,
            clat: true,
            lat: true,
            bw: true,
            slat_percentiles: false,
            clat_percentiles: true,
            lat_percentiles: false,
            percentiles: PERCENTILES.to_vec(),
            significant_figures: 4,
            unified: UnifiedReporting::None,
            stats: true,
            logs: LogPrefixes {
                per_job: true,
                ..LogPrefixes::default()
            },
            bw_window_ns: 500 * MS,
            iops_window_ns: 500 * MS,
            disk_util: true,
            kb_base: 1024,
            unit_base: 0,
            counts_stops: false,
        }
    }
}
