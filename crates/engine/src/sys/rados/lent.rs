//! Writes that are sent from where the data are, and reads that leave them where they came, without a copy.
//!
//! librados' C functions copy what they write, and what they have read. Its C++ functions take lists of buffers that may be anybody's
//! memory, and hand out those that they have received. They are found at run time like the others: their names hold the version of Ceph's binary interface and the types of all arguments, so
//! that a library with another interface does not have them, and writes are copied there. Nothing here knows how Ceph lays out
//! its objects: its own functions make, use and empty them, in room that is several times as large as they need. A list of buffers is
//! tried out once, on memory of our own, before anything is written.
//!
//! A request that was given up may still be on its way to a daemon that is silent. So memory is lent only to a client that nobody
//! else uses: it is shut down, and its connections with it, before the memory goes.

use super::super::arrivals::Raw;
use super::{Callback, Library, functions};
use std::ffi::{CStr, c_char, c_int, c_uint, c_void};

/// Shorter pieces are copied: that costs less than the list does.
pub(super) const LENT_FROM: usize = 64 << 10;

functions! {
    /// What is called of Ceph's C++ interface.
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

/// Room for an object of Ceph's, which needs up to 32 bytes as far as is known. It may point into itself, and is not moved.
#[repr(C, align(16))]
pub(super) struct Room([u64; ROOM_WORDS]);

impl Room {
    const fn new() -> Room {
        Room([MARK; ROOM_WORDS])
    }

    /// Whether nothing was written near its end.
    fn is_ample(&self) -> bool {
        self.0[ROOM_WORDS / 2..].iter().all(|word| *word == MARK)
    }
}

/// A `const std::string` of libstdc++ (its `__cxx11` interface, which is part of the names above), over a text of ours.
#[repr(C)]
pub(super) struct Text {
    start: *const c_char,
    length: usize,
    /// Capacity; or short texts, which are kept elsewhere here.
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
    /// Ceph's C++ interface, where it is the one that is known and does what it is known for.
    pub(super) fn in_library(library: &Library) -> Option<Lender> {
        // How a function returns an object differs between processors; this is written for one.
        if !cfg!(all(target_arch = "x86_64", target_pointer_width = "64")) {
            return None;
        }
        Lender::of(library).ok().filter(Lender::works)
    }

    /// Whether lists are of the memory itself, have its length, can be joined and emptied, and stay within their room.
    fn works(&self) -> bool {
        let mut data = [0u8; 9];
        let start = data.as_mut_ptr();
        let (mut list, mut rest) = (Room::new(), Room::new());
        // SAFETY: the lists are made, used while their memory is there, and emptied. `start` is valid for nine bytes.
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

    /// Makes a list one of nothing: what it held is let go of.
    ///
    /// # Safety
    /// `list` was made by `list_of`.
    unsafe fn empty(&self, list: &mut Room) {
        let list: *mut Room = list;
        // SAFETY: by the caller's promise. A list may become a part of itself: it looks at its length first, then empties itself.
        unsafe { (self.list_become_part)(list, list, 0, 0) };
    }

    /// Releases a completion.
    ///
    /// # Safety
    /// Made by [`Lent::write`], and not used any more.
    pub(super) unsafe fn release(&self, completion: Raw) {
        // SAFETY: by the caller's promise.
        unsafe { (self.completion_release)(completion) };
    }
}

/// What was read, where the library has put it: a list of its buffers. Nobody looks at them here.
pub(super) struct Received {
    lender: &'static Lender,
    list: Box<Room>,
}

// SAFETY: it is a list of counted references to buffers, which any thread may let go of.
unsafe impl Send for Received {}

impl Received {
    fn nothing(lender: &'static Lender) -> Received {
        let mut list = Box::new(Room::new());
        // SAFETY: a list of no bytes has no memory. It is made before it is emptied, in room that stays where it is.
        unsafe {
            (lender.list_of)(&mut *list, std::ptr::dangling_mut(), 0);
            lender.empty(&mut list);
        }
        Received { lender, list }
    }
}

impl Drop for Received {
    fn drop(&mut self) {
        // SAFETY: made by `list_of`. A list of nothing holds no memory, and its end is that of the room.
        unsafe { self.lender.empty(&mut self.list) };
    }
}

/// Memory that is lent again and again, and holds the same each time. Ceph keeps the checksum of it, which each write of it needs, with
/// the buffer that the list is of, and other lists share.
pub(super) struct Constant {
    lender: &'static Lender,
    list: Box<Room>,
    start: *const u8,
    length: usize,
}

// SAFETY: it is a list of counted references to buffers, which any thread may let go of. The address is only compared.
unsafe impl Send for Constant {}

impl Constant {
    /// Whether it is of this memory.
    pub(super) fn is_of(&self, start: *const u8, length: usize) -> bool {
        (self.start, self.length) == (start, length)
    }
}

impl Drop for Constant {
    fn drop(&mut self) {
        // SAFETY: made by `list_of`. A list of nothing holds no memory, and its end is that of the room.
        unsafe { self.lender.empty(&mut self.list) };
    }
}

/// A pool, to write to from memory that is lent, and to read from.
pub(super) struct Lent {
    lender: &'static Lender,
    io: Box<Room>,
}

// SAFETY: it is a counted reference to librados' context, which any thread may use and let go of.
unsafe impl Send for Lent {}

impl Lent {
    /// # Safety
    /// `io` is a context of librados, which is destroyed after this.
    pub(super) unsafe fn new(lender: &'static Lender, io: Raw) -> Option<Lent> {
        let mut room = Box::new(Room::new());
        // SAFETY: made before it is used, in room that stays where it is.
        unsafe {
            (lender.io_make)(&mut *room);
            (lender.io_become)(io, &mut *room);
        }
        let is_ample = room.is_ample();
        let lent = Lent { lender, io: room };
        is_ample.then_some(lent)
    }

    /// How completions are released.
    pub(super) fn lender(&self) -> &'static Lender {
        self.lender
    }

    /// A completion that calls back with this argument.
    pub(super) fn completion(&self, argument: *mut c_void, callback: Callback) -> Raw {
        // SAFETY: a function and its argument, which is good for as long as requests with it are under way.
        unsafe { (self.lender.completion_make)(argument, callback) }
    }

    /// Memory that holds the same for as long as this is written.
    ///
    /// # Safety
    /// It does not change from now on, and is there until the client has been shut down.
    pub(super) unsafe fn constant(&self, start: *mut u8, length: usize) -> Constant {
        let mut list = Box::new(Room::new());
        // SAFETY: room that stays where it is; memory as promised by the caller.
        unsafe { (self.lender.list_of)(&mut *list, start.cast(), length) };
        Constant {
            lender: self.lender,
            list,
            start,
            length,
        }
    }

    /// Starts a write of `length` bytes at `data`, and of what is constant after them.
    ///
    /// # Safety
    /// The completion is of [`Lent::completion`]; the data do not change until it is over, and are there until the client has
    /// been shut down.
    pub(super) unsafe fn write(
        &mut self,
        object: &CStr,
        completion: Raw,
        (data, length): (*mut u8, usize),
        constant: Option<&Constant>,
        offset: u64,
    ) -> c_int {
        let (io, name) = (&mut *self.io, Text::of(object));
        // SAFETY: the library has references of its own to what the lists hold; data as promised by the caller.
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

    /// Starts a read of `length` bytes. What comes is let go of with what this returns.
    ///
    /// # Safety
    /// The completion is of [`Lent::completion`]; what is returned is there until it is over.
    pub(super) unsafe fn read(
        &mut self,
        object: &CStr,
        completion: Raw,
        length: usize,
        offset: u64,
    ) -> (c_int, Received) {
        let mut received = Received::nothing(self.lender);
        let (io, name) = (&mut *self.io, Text::of(object));
        // SAFETY: the list stays where it is for as long as the library fills it, by the caller's promise.
        let started = unsafe {
            let list: *mut Room = &mut *received.list;
            (self.lender.io_read)(io, &name, completion, list, length, offset)
        };
        (started, received)
    }

    /// Gives a request up.
    ///
    /// # Safety
    /// The completion is of [`Lent::completion`], and not released.
    pub(super) unsafe fn cancel(&mut self, completion: Raw) {
        // SAFETY: by the caller's promise. One that is over meanwhile is not found, which is as good.
        unsafe { (self.lender.io_cancel)(&mut *self.io, completion) };
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        // SAFETY: made in `new`, ended once; its room is as it was.
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
            // SAFETY: the test's own room.
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
