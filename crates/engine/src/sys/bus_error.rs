//! Copies from and to mapped files that survive SIGBUS.
//!
//! The kernel raises SIGBUS if it cannot provide a mapped page: the file was truncated, its file
//! system is full, or the device failed. The handler maps an empty page there, so that the copy
//! continues, and sets a flag. Any other SIGBUS gets the previous action.

use crate::sys::c_library as libc;
use std::io;
use std::sync::Once;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicUsize, Ordering, compiler_fence};

/// Address range that this thread copies to or from.
struct CopyRange {
    start: AtomicUsize,
    end: AtomicUsize,
    hit: AtomicBool,
}

thread_local! {
    // No destructor and no lazy initialisation, because neither is safe in a signal handler.
    static COPY_RANGE: CopyRange = const {
        CopyRange {
            start: AtomicUsize::new(0),
            end: AtomicUsize::new(0),
            hit: AtomicBool::new(false),
        }
    };
}

static INSTALLED: Once = Once::new();
static PAGE: AtomicUsize = AtomicUsize::new(4096);
/// Previous action of SIGBUS. Never freed.
static BEFORE: AtomicPtr<libc::sigaction> = AtomicPtr::new(std::ptr::null_mut());

/// Installs the handler, once per process.
pub(super) fn install() {
    INSTALLED.call_once(|| {
        // SAFETY: sysconf only reads; a zeroed sigaction is valid (no flags, an empty mask); the
        // pointers are to values that live through the calls, and the one kept is leaked.
        unsafe {
            if let Ok(page) = usize::try_from(libc::sysconf(libc::_SC_PAGESIZE)) {
                PAGE.store(page, Ordering::Relaxed);
            }
            let before = Box::into_raw(Box::new(std::mem::zeroed::<libc::sigaction>()));
            libc::sigaction(libc::SIGBUS, std::ptr::null(), before);
            BEFORE.store(before, Ordering::Release);
            let mut action: libc::sigaction = std::mem::zeroed();
            action.sa_sigaction = on_bus_error as *const () as usize;
            action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
            libc::sigaction(libc::SIGBUS, &action, std::ptr::null_mut());
        }
    });
}

/// Runs `copy`, which accesses `length` bytes of a mapping from `start`. Returns whether all pages
/// were present. If not, empty pages replaced some of them, and the file must be mapped again.
#[inline]
pub(super) fn survived(start: *const u8, length: usize, copy: impl FnOnce()) -> bool {
    COPY_RANGE.with(|range| {
        debug_assert_eq!(range.end.load(Ordering::Relaxed), 0, "copies do not nest");
        range.hit.store(false, Ordering::Relaxed);
        range.start.store(start as usize, Ordering::Relaxed);
        range.end.store(start as usize + length, Ordering::Relaxed);
        // The handler runs on this thread, so only the compiler could reorder. The stores above
        // come before each read and write of the copy, the accesses below after them: this keeps a
        // store before a later read, which release and acquire do not.
        compiler_fence(Ordering::SeqCst);
        copy();
        compiler_fence(Ordering::SeqCst);
        range.end.store(0, Ordering::Relaxed);
        !range.hit.load(Ordering::Relaxed)
    })
}

extern "C" fn on_bus_error(_: libc::c_int, info: *mut libc::siginfo_t, _: *mut libc::c_void) {
    // SAFETY: the kernel passes a valid siginfo of a SIGBUS, which has an address.
    let address = unsafe { (*info).si_addr() } as usize;
    // SAFETY: errno of this thread is restored below, so the interrupted code sees no change.
    let errno = unsafe { *libc::__errno_location() };
    let mended = COPY_RANGE.with(|range| {
        let watches = (range.start.load(Ordering::Relaxed)..range.end.load(Ordering::Relaxed))
            .contains(&address);
        let mended = watches && put_empty_page(address).is_ok();
        if mended {
            range.hit.store(true, Ordering::Relaxed);
        }
        mended
    });
    if !mended {
        // SAFETY: `install` has stored this action. The access faults again on return, and the
        // previous action handles it.
        unsafe {
            libc::sigaction(
                libc::SIGBUS,
                BEFORE.load(Ordering::Acquire),
                std::ptr::null_mut(),
            )
        };
    }
    // SAFETY: writes errno of this thread, as above.
    unsafe { *libc::__errno_location() = errno };
}

fn put_empty_page(address: usize) -> io::Result<()> {
    let page = PAGE.load(Ordering::Relaxed);
    // SAFETY: the page belongs to a mapping that a `survived` of this thread copies from or to, and
    // nothing else refers to it. mmap(2) is a plain system call, allowed in a signal handler.
    let base = unsafe {
        libc::mmap(
            (address & !(page - 1)) as *mut libc::c_void,
            page,
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED,
            -1,
            0,
        )
    };
    match base == libc::MAP_FAILED {
        true => Err(io::Error::last_os_error()),
        false => Ok(()),
    }
}
