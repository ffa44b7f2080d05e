//! Bindings of librbd that create, list and remove the images of a pool.

use super::io_ctx::IoCtx;
use super::pending_ios::LibraryPtr;
use super::rados::{c_string, checked, functions, load_library};
use super::rbd::LIBRARY;
use crate::error::{CephAction, CephError};
use crate::image_name::ImageName;
use libloading::Library;
use std::ffi::{c_char, c_int};
use std::ptr::null_mut;
use std::sync::OnceLock;

/// Initial bytes of the list of images.
const FIRST_LIST_BYTES: usize = 4096;
/// Maximum number of calls while the list grows between them.
const LIST_TRIES: usize = 8;

functions! {
    /// Functions of librbd that manage images.
    ImageFunctions {
        options_create: unsafe extern "C" fn(*mut LibraryPtr) = b"rbd_image_options_create",
        options_destroy: unsafe extern "C" fn(LibraryPtr) = b"rbd_image_options_destroy",
        create: unsafe extern "C" fn(LibraryPtr, *const c_char, u64, LibraryPtr) -> c_int
            = b"rbd_create4",
        remove: unsafe extern "C" fn(LibraryPtr, *const c_char) -> c_int = b"rbd_remove",
        list: unsafe extern "C" fn(LibraryPtr, *mut c_char, *mut usize) -> c_int = b"rbd_list",
    }
}

impl ImageFunctions {
    fn loaded() -> Result<&'static ImageFunctions, CephError> {
        static LOADED: OnceLock<Result<ImageFunctions, CephError>> = OnceLock::new();
        let find = |library: &Library| ImageFunctions::load_from(library);
        let loaded = LOADED.get_or_init(|| load_library(LIBRARY, find));
        loaded.as_ref().map_err(Clone::clone)
    }
}

impl IoCtx {
    /// Creates an image of this length, with the cluster's default features. Fails if it exists.
    pub(crate) fn create_image(&self, image: &ImageName, bytes: u64) -> Result<(), CephError> {
        let rbd = ImageFunctions::loaded()?;
        let name = c_string(&image.image)?;
        let mut options = null_mut();
        // SAFETY: the options are made, used and destroyed once. The string outlives the call.
        let created = unsafe {
            (rbd.options_create)(&mut options);
            let created = (rbd.create)(self.raw().1, name.as_ptr(), bytes, options);
            (rbd.options_destroy)(options);
            created
        };
        let namespace = image.namespace.as_ref();
        checked(created, || CephAction::CreateImage {
            image: image.image.clone(),
            namespace: namespace.map(|namespace| format!("{}/{namespace}", image.pool)),
        })
        .map(|_| ())
    }

    /// Removes an image with its data. Fails with `EBUSY` while another client has it open.
    pub(crate) fn remove_image(&self, image: &str) -> Result<(), CephError> {
        let rbd = ImageFunctions::loaded()?;
        let name = c_string(image)?;
        // SAFETY: the string outlives the call.
        let removed = unsafe { (rbd.remove)(self.raw().1, name.as_ptr()) };
        checked(removed, || CephAction::RemoveImage(image.to_owned())).map(|_| ())
    }

    /// Names of all images of the pool's namespace with this prefix.
    pub(crate) fn images(&self, prefix: &str) -> Result<Vec<String>, CephError> {
        let rbd = ImageFunctions::loaded()?;
        let mut room = FIRST_LIST_BYTES;
        for _ in 0..LIST_TRIES {
            let (mut names, mut length) = (vec![0u8; room], room);
            // SAFETY: the length is that of the buffer.
            let listed =
                unsafe { (rbd.list)(self.raw().1, names.as_mut_ptr().cast(), &mut length) };
            if listed == -libc::ERANGE {
                room = length.max(room + 1);
                continue;
            }
            checked(listed, || CephAction::ListImages)?;
            names.truncate(length);
            let names = names.split(|byte| *byte == 0);
            let names = names.map(|name| String::from_utf8_lossy(name).into_owned());
            let ours = |name: &String| !name.is_empty() && name.starts_with(prefix);
            return Ok(names.filter(ours).collect());
        }
        checked(-libc::ERANGE, || CephAction::ListImages).map(|_| Vec::new())
    }
}
