//! Zero copy for librados: writes are sent from the caller's buffers, reads stay in the library's.
//!
//! The C functions of librados copy all data. Its C++ functions accept lists of buffers in foreign
//! memory and return the received ones. They are found at run time: the mangled names contain the
//! version of Ceph's binary interface and all argument types, so another interface lacks them, and
//! writes are copied. Nothing here depends on the layout of Ceph's objects: its own functions make,
//! use and empty them, in space several times as large as needed. A list is tested before use.
//!
//! A cancelled request may still be on its way to a daemon that does not answer. So only a client
//! with a single owner borrows memory, and it is shut down before the memory is freed.

use super::super::arrivals::Raw;
use super::{Callback, Library, functions};
use std::ffi::{CStr, c_char, c_int, c_uint, c_void};

/// Smallest piece in bytes that is lent: for shorter ones a copy is cheaper than the list.
pub(super) const LENT_FROM: usize = 64 << 10;

functions! {
    /// Functions of Ceph's C++ interface in use.
    Lender {
        list_of: unsafe extern "C" fn(*mut Room, *mut c_char, usize) -> *mut Room = b"_ZN4ceph6buffer7v15_2_04list15static_from_memEPcm",
        list_become_part: unsafe extern "C" fn(*mut Room, *const Room, c_uint, c_uint) = b"_ZN4ceph6buffer7v15_2_04list9substr_ofERKS2_jj",
        list_append: unsafe extern "C" fn(*mut Room, *const Room) = b"_ZN4ceph6buffer7v15_2_04list6appendERKS2_",
        list_crc: unsafe extern "C" fn(*const Room, u32) -> u32 = b"_ZNK4ceph6buffer7v15_2_04list6crc32cEj",
        io_make: unsafe extern "C" fn(*mut Room) = b"_ZN8librados7v14_2_05IoCtxC1Ev",
        io_become: unsafe extern "C" fn(Raw, *mut Room) = b"_ZN8librados7v14_2_05IoCtx18from_rados_ioctx_tEPvRS1_",
        io_end: unsafe extern "C" fn(*mut Room) = b"_ZN8librados7v14_2_05IoCtxD1Ev",
        io_write: unsafe extern "C" fn(*mut Room, *const Text, Raw, *const Room, usize, u64) -> c_int
            = b"_ZN8librados7v14_2_05IoCtx9aio_writeERKNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEEPNS0_13AioCompletionERKN4ceph6buffer7v15_2_04listEmm",
        io_read: unsafe extern "C" fn(*mut Room, *const Text, Raw, *mut Room, usize, u64) -> c_int
            = b"_ZN8librados7v14_2_05IoCtx8aio_readERKNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEEPNS0_13AioCompletionEPN4ceph6buffer7v15_2_04listEmm",
        io_cancel: unsafe extern "C" fn(*mut Room, Raw) -> c_int = b"_ZN8librados7v14_2_05IoCtx10aio_cancelEPNS0_13AioCompletionE",
        completion_make: unsafe extern "C" fn(*mut c_void, Callback) -> Raw = b"_ZN8librados7v14_2_05Rados21aio_create_completionEPvPFvS2_S2_E",
        completion_release: unsafe extern "C" fn(Raw) = b"_ZN8librados7v14_2_013AioCompletion7releaseEv",
    }
}

const ROOM_WORDS: usize = 64;
const MARK: u64 = 0x1056_0e0d_e5ee_d5a1;

/// Space for an object of Ceph (up to 32 bytes, as known). Not moved: it may hold self-references.
#[repr(C, align(16))]
pub(super) struct Room([u64; ROOM_WORDS]);

impl Room {
    const fn new() -> Room {
        Room([MARK; ROOM_WORDS])
    }

    /// Whether the second half is unchanged.
    fn is_ample(&self) -> bool {
        self.0[ROOM_WORDS / 2..].iter().all(|word| *word == MARK)
    }
}

/// A `const std::string` of libstdc++ (`__cxx11`, as in the names above) over a C string.
#[repr(C)]
pub(super) struct Text {
    start: *const c_char,
    length: usize,
    /// Capacity, or the inline buffer for short strings, which is not used here.
    rest: [usize; 2],
}

impl Text {
    fn of(text: &CStr) -> Text {
        let length = text.to_bytes().len();
        Text {
            start: text.as_ptr(),
            length,
            rest: [length, 0],
        }
    }
}

impl Lender {
    /// Returns Ceph's C++ interface, if it is the known one and passes a test.
    pub(super) fn in_library(library: &Library) -> Option<Lender> {
        // How functions return objects depends on the processor. This code supports one.
        if !cfg!(all(target_arch = "x86_64", target_pointer_width = "64")) {
            return None;
        }
        Lender::of(library).ok().filter(Lender::works)
    }

    /// Whether lists refer to the memory itself, can be joined and emptied, and fit their space.
    fn works(&self) -> bool {
        let mut data = [0u8; 9];
        let start = data.as_mut_ptr();
        let (mut list, mut rest) = (Room::new(), Room::new());
        // SAFETY: lists are made, used while their memory lives, and emptied. `start` has 9 bytes.
        unsafe {
            (self.list_of)(&mut list, start.cast(), 4);
            (self.list_of)(&mut rest, start.add(4).cast(), 5);
            (self.list_append)(&mut list, &rest);
            self.empty(&mut rest);
            start.copy_from_nonoverlapping(b"123456789".as_ptr(), 9);
            let is_this = (self.list_crc)(&list, u32::MAX) == !0xe306_9283;
            self.empty(&mut list);
            is_this && (self.list_crc)(&list, 7) == 7 && list.is_ample() && rest.is_ample()
        }
    }

    /// Empties a list, which releases its buffers.
    ///
    /// # Safety
    /// `list` was made by `list_of`.
    unsafe fn empty(&self, list: &mut Room) {
        let list: *mut Room = list;
        // SAFETY: the caller's promise. A list may be its own source: it is read, then cleared.
        unsafe { (self.list_become_part)(list, list, 0, 0) };
    }

    /// Releases a completion.
    ///
    /// # Safety
    /// Made by [`Lent::completion`], and not used afterwards.
    pub(super) unsafe fn release(&self, completion: Raw) {
        // SAFETY: a completion of this interface, as the caller promises.
        unsafe { (self.completion_release)(completion) };
    }
}

/// Data of a read as a list of the library's buffers. No code here reads them.
pub(super) struct Received {
    lender: &'static Lender,
    list: Box<Room>,
}

// SAFETY: a list of counted references to buffers, which any thread may release.
unsafe impl Send for Received {}

impl Received {
    fn nothing(lender: &'static Lender) -> Received {
        let mut list = Box::new(Room::new());
        // SAFETY: an empty list has no memory. It is made before it is emptied, and does not move.
        unsafe {
            (lender.list_of)(&mut *list, std::ptr::dangling_mut(), 0);
            lender.empty(&mut list);
        }
        Received { lender, list }
    }
}

impl Drop for Received {
    fn drop(&mut self) {
        // SAFETY: made by `list_of`. An empty list holds no memory, so its space can be freed.
        unsafe { self.lender.empty(&mut self.list) };
    }
}

/// Memory that is written repeatedly with the same contents. Ceph caches its checksum, which each
/// write needs, in the buffer that the lists share.
pub(super) struct Constant {
    lender: &'static Lender,
    list: Box<Room>,
    start: *const u8,
    length: usize,
}

// SAFETY: a list of counted references, which any thread may release. The address is only compared.
unsafe impl Send for Constant {}

impl Constant {
    /// Whether this constant describes this memory.
    pub(super) fn is_of(&self, start: *const u8, length: usize) -> bool {
        (self.start, self.length) == (start, length)
    }
}

impl Drop for Constant {
    fn drop(&mut self) {
        // SAFETY: made by `list_of`. An empty list holds no memory, so its space can be freed.
        unsafe { self.lender.empty(&mut self.list) };
    }
}

/// A pool context of the C++ interface, for writes from lent memory and for reads.
pub(super) struct Lent {
    lender: &'static Lender,
    io: Box<Room>,
}

// SAFETY: a counted reference to librados' context, which any thread may use and release.
unsafe impl Send for Lent {}

impl Lent {
    /// # Safety
    /// `io` is a context of librados, which is destroyed after this.
    pub(super) unsafe fn new(lender: &'static Lender, io: Raw) -> Option<Lent> {
        let mut room = Box::new(Room::new());
        // SAFETY: made before it is used, in space that stays where it is.
        unsafe {
            (lender.io_make)(&mut *room);
            (lender.io_become)(io, &mut *room);
        }
        let is_ample = room.is_ample();
        let lent = Lent { lender, io: room };
        is_ample.then_some(lent)
    }

    /// Interface that releases completions.
    pub(super) fn lender(&self) -> &'static Lender {
        self.lender
    }

    /// Creates a completion that calls `callback` with this argument.
    pub(super) fn completion(&self, argument: *mut c_void, callback: Callback) -> Raw {
        // SAFETY: a function and its argument, which is valid while requests with it are in flight.
        unsafe { (self.lender.completion_make)(argument, callback) }
    }

    /// Declares memory constant while it is written.
    ///
    /// # Safety
    /// It does not change from now on, and exists until the client has been shut down.
    pub(super) unsafe fn constant(&self, start: *mut u8, length: usize) -> Constant {
        let mut list = Box::new(Room::new());
        // SAFETY: space that stays where it is, and memory as the caller promises.
        unsafe { (self.lender.list_of)(&mut *list, start.cast(), length) };
        Constant {
            lender: self.lender,
            list,
            start,
            length,
        }
    }

    /// Starts a write of `length` bytes at `data`, followed by `constant`.
    ///
    /// # Safety
    /// The completion is from [`Lent::completion`]. The data do not change until it completes, and
    /// exist until the client has been shut down.
    pub(super) unsafe fn write(
        &mut self,
        object: &CStr,
        completion: Raw,
        (data, length): (*mut u8, usize),
        constant: Option<&Constant>,
        offset: u64,
    ) -> c_int {
        let (io, name) = (&mut *self.io, Text::of(object));
        // SAFETY: the library has own references to the buffers. Data as the caller promises.
        unsafe {
            if let (Some(constant), 0) = (constant, length) {
                let (list, length) = (&*constant.list, constant.length);
                return (self.lender.io_write)(io, &name, completion, list, length, offset);
            }
            let mut list = Room::new();
            (self.lender.list_of)(&mut list, data.cast(), length);
            if let Some(constant) = constant {
                (self.lender.list_append)(&mut list, &*constant.list);
            }
            let length = length + constant.map_or(0, |constant| constant.length);
            let started = (self.lender.io_write)(io, &name, completion, &list, length, offset);
            self.lender.empty(&mut list);
            started
        }
    }

    /// Starts a read of `length` bytes. Dropping the returned value releases the received data.
    ///
    /// # Safety
    /// The completion is from [`Lent::completion`]. The returned value lives until it completes.
    pub(super) unsafe fn read(
        &mut self,
        object: &CStr,
        completion: Raw,
        length: usize,
        offset: u64,
    ) -> (c_int, Received) {
        let mut received = Received::nothing(self.lender);
        let (io, name) = (&mut *self.io, Text::of(object));
        // SAFETY: the list stays in place while the library fills it, by the caller's promise.
        let started = unsafe {
            let list: *mut Room = &mut *received.list;
            (self.lender.io_read)(io, &name, completion, list, length, offset)
        };
        (started, received)
    }

    /// Cancels a request.
    ///
    /// # Safety
    /// The completion is from [`Lent::completion`], and not released.
    pub(super) unsafe fn cancel(&mut self, completion: Raw) {
        // SAFETY: by the caller's promise. Cancelling a completed request has no effect.
        unsafe { (self.lender.io_cancel)(&mut *self.io, completion) };
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        // SAFETY: made in `new` and destroyed once, in the same place.
        unsafe { (self.lender.io_end)(&mut *self.io) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interface_that_does_something_else_is_not_used() {
        unsafe extern "C" fn list_of(room: *mut Room, _: *mut c_char, _: usize) -> *mut Room {
            room
        }
        unsafe extern "C" fn outgrows(room: *mut Room, _: *const Room, _: c_uint, _: c_uint) {
            // SAFETY: `room` points to space of this test.
            unsafe { (*room).0[ROOM_WORDS - 1] = 0 };
        }
        unsafe extern "C" fn become_part(_: *mut Room, _: *const Room, _: c_uint, _: c_uint) {}
        unsafe extern "C" fn append(_: *mut Room, _: *const Room) {}
        unsafe extern "C" fn right(_: *const Room, seed: u32) -> u32 {
            if seed == 7 { 7 } else { !0xe306_9283 }
        }
        unsafe extern "C" fn copied(_: *const Room, seed: u32) -> u32 {
            seed
        }
        unsafe extern "C" fn make(_: *mut Room) {}
        unsafe extern "C" fn becomes(_: Raw, _: *mut Room) {}
        unsafe extern "C" fn write(
            _: *mut Room,
            _: *const Text,
            _: Raw,
            _: *const Room,
            _: usize,
            _: u64,
        ) -> c_int {
            0
        }
        unsafe extern "C" fn read(
            _: *mut Room,
            _: *const Text,
            _: Raw,
            _: *mut Room,
            _: usize,
            _: u64,
        ) -> c_int {
            0
        }
        unsafe extern "C" fn cancel(_: *mut Room, _: Raw) -> c_int {
            0
        }
        unsafe extern "C" fn completion(argument: *mut c_void, _: Callback) -> Raw {
            argument
        }
        unsafe extern "C" fn release(_: Raw) {}
        let as_known = Lender {
            list_of,
            list_become_part: become_part,
            list_append: append,
            list_crc: right,
            io_make: make,
            io_become: becomes,
            io_end: make,
            io_write: write,
            io_read: read,
            io_cancel: cancel,
            completion_make: completion,
            completion_release: release,
        };
        assert!(as_known.works());
        let with = |change: fn(&mut Lender)| {
            let mut lender = as_known;
            change(&mut lender);
            lender.works()
        };
        assert!(!with(|lender| lender.list_crc = copied));
        assert!(!with(|lender| lender.list_become_part = outgrows));
    }

    #[test]
    fn a_text_is_what_librados_takes_for_a_string() {
        let text = Text::of(c"object");
        assert_eq!((text.length, size_of::<Text>()), (6, 32));
    }
}
