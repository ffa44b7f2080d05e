//! The io_uring of a build without the feature `local`: none can be created.

use super::memory::{IoMemory, Slab};
pub(crate) use super::ring_options::{MinWait, RingOptions};
use crate::slot::Completion;
pub(crate) use AbsentRing as Ring;
use std::io;
use std::os::fd::RawFd;

/// An io_uring, of which there is none.
pub(crate) enum AbsentRing {}

/// Fails: this build has no io_uring.
pub fn try_one() -> io::Result<()> {
    Err(absent())
}

pub(crate) fn probe_discard(_: RawFd, _: bool) -> io::Result<()> {
    Err(absent())
}

pub(crate) fn sqpoll_thread_status() -> io::Result<Option<String>> {
    Err(absent())
}

fn absent() -> io::Error {
    io::Error::from_raw_os_error(libc::ENOSYS)
}

impl AbsentRing {
    pub(crate) fn new(_: u32, _: RingOptions, _: &IoMemory) -> io::Result<AbsentRing> {
        Err(absent())
    }

    pub(crate) fn set_files(&mut self, _: &[RawFd], _: bool) -> io::Result<()> {
        match *self {}
    }

    pub(crate) fn register_buffers(&mut self, _: &IoMemory) -> io::Result<()> {
        match *self {}
    }

    pub(crate) fn fixed_buffers(&self) -> bool {
        match *self {}
    }

    pub(crate) fn registered_files(&self) -> bool {
        match *self {}
    }

    pub(crate) fn flags(&self) -> Vec<&'static str> {
        match *self {}
    }

    pub(crate) fn submit(&mut self, _: &mut Slab, _: &[u32]) -> usize {
        match *self {}
    }

    pub(crate) fn reap(
        &mut self,
        _: &mut IoMemory,
        _: usize,
        _: Option<u64>,
        _: &mut Vec<Completion>,
    ) -> io::Result<()> {
        match *self {}
    }
}
