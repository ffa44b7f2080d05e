//! Tests of the program from outside, linked once.

mod beside;
mod bounds;
mod common;
mod curves;
mod equals;
mod facts;
mod figures;
mod history;
mod hostile_texts;
mod killed;
mod load;
mod most;
mod neighbour;
mod outputs;
mod pivots;
mod promise;
mod pts;
mod rados;
mod report;
mod suite_commands;
mod suite_targets;
mod suites;
mod sweep;
mod versions;
mod watch_recordings;
mod windows_and_sums;
