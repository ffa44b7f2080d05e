//! Pauses where the sequence starts over: they neither add nor drop an I/O.

use super::*;

/// All I/Os, taken in batches of 3, and the number of I/Os before each pause.
fn with_stops(job: &Job, layout: &FileLayout, most: usize) -> (Vec<Io>, Vec<(usize, StartOver)>) {
    let mut generator = Generator::new(job, layout, Seeds::from_u64(1)).unwrap();
    generator.stop_where_it_starts_over();
    let (mut ios, mut stops) = (Vec::new(), Vec::new());
    while ios.len() < most {
        let mut batch = [Io::EMPTY; 3];
        let count = generator.fill(&mut batch);
        ios.extend_from_slice(&batch[..count]);
        if count < batch.len() {
            match generator.take_stop() {
                Some(why) => stops.push((ios.len(), why)),
                None => break,
            }
        }
    }
    (ios, stops)
}

#[test]
fn stops_are_at_the_start_of_each_loop() {
    for rw in ["read", "randread", "write", "randrw"] {
        let mut job = job(rw);
        job.schedule.loops = 3;
        let layout = FileLayout::whole_file(16 * KIB);
        let (ios, stops) = with_stops(&job, &layout, 100);
        assert_eq!(stops, [(4, StartOver::Pass), (8, StartOver::Pass)], "{rw}");
        assert_eq!(ios, run(&job, &layout), "{rw}");
    }
}

#[test]
fn stops_of_an_endless_job_name_the_file() {
    for rw in ["read", "randread"] {
        let mut job = job(rw);
        job.schedule.time_based = true;
        let layout = FileLayout::whole_file(16 * KIB);
        let (ios, stops) = with_stops(&job, &layout, 9);
        assert_eq!(
            stops,
            [(4, StartOver::File(0)), (8, StartOver::File(0))],
            "{rw}"
        );
        assert_eq!(ios[..9], run(&job, &layout)[..9], "{rw}");
    }
}

#[test]
fn stops_of_mixed_sizes_are_where_the_random_map_is_full() {
    let mut job = job("randread");
    job.schedule.time_based = true;
    let sizes = vec![(4 * KIB, 50), (8 * KIB, 50)];
    job.workload.block_size = PerDirection::from_value(BlockSize::Split(sizes));
    let layout = FileLayout::whole_file(64 * KIB);
    let (ios, stops) = with_stops(&job, &layout, 40);
    let (first, why) = stops[0];
    assert_eq!(why, StartOver::File(0));
    let bytes: u64 = ios[..first].iter().map(|io| u64::from(io.len)).sum();
    assert_eq!(bytes, 64 * KIB);
}

#[test]
fn stops_are_passes_for_sequential_and_files_for_random() {
    let layout = four_files(8);
    let mut sequential = job("read");
    sequential.schedule.time_based = true;
    let (_, stops) = with_stops(&sequential, &layout, 17);
    assert_eq!(stops, [(8, StartOver::Pass), (16, StartOver::Pass)]);
    let mut random = job("randread");
    random.schedule.time_based = true;
    let (_, stops) = with_stops(&random, &layout, 12);
    let files: Vec<_> = stops.iter().map(|(_, why)| *why).collect();
    assert_eq!(files, [0, 1, 2, 3].map(StartOver::File));
}

#[test]
fn random_without_map_never_stops() {
    let mut job = job("randread");
    job.schedule.time_based = true;
    job.workload.random_map = RandomMap::None;
    let (_, stops) = with_stops(&job, &FileLayout::whole_file(16 * KIB), 50);
    assert_eq!(stops, []);
}
