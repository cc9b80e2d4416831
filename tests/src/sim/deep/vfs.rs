//! The simulated disk as SQLite sees it: a VFS whose every call ends in [`super::disk`]. All the `unsafe` there is in the
//! simulation is here, because SQLite calls it through C.
#![expect(unsafe_code, reason = "SQLite's VFS is an interface of C functions and raw pointers")]

use std::cell::RefCell;
use std::ffi::{CStr, c_char, c_int, c_void};
use std::ptr;
use std::rc::Rc;
use std::sync::Once;

use rusqlite::ffi;

use super::disk::{Disk, Inode, SECTOR, Step, Verdict, disk};
use super::past;

/// The name it is registered under.
pub(super) const NAME: &str = "yard-simulated";
const C_NAME: &CStr = c"yard-simulated";
/// Longest name of a file.
const LONGEST: c_int = 512;

/// An open file: SQLite's part first, then ours.
#[repr(C)]
struct File {
    base: ffi::sqlite3_file,
    /// Made by `open`, freed by `close`.
    open: *mut Open,
}

struct Open {
    name: Option<String>,
    inode: Rc<RefCell<Inode>>,
    level: c_int,
    /// Which shm locks this connection holds, a bit each.
    shared: u8,
    exclusive: u8,
    uses_shm: bool,
}

/// Makes the disk known to SQLite, once per process.
pub(super) fn register() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let vfs = Box::new(ffi::sqlite3_vfs {
            iVersion: 2,
            szOsFile: size_of::<File>() as c_int,
            mxPathname: LONGEST,
            pNext: ptr::null_mut(),
            zName: C_NAME.as_ptr(),
            pAppData: ptr::null_mut(),
            xOpen: Some(open),
            xDelete: Some(delete),
            xAccess: Some(access),
            xFullPathname: Some(full_pathname),
            xDlOpen: None,
            xDlError: None,
            xDlSym: None,
            xDlClose: None,
            xRandomness: Some(randomness),
            xSleep: Some(sleep),
            xCurrentTime: Some(current_time),
            xGetLastError: Some(last_error),
            xCurrentTimeInt64: Some(current_time_int64),
            xSetSystemCall: None,
            xGetSystemCall: None,
            xNextSystemCall: None,
        });
        // SAFETY: the structure is complete and lives for ever, as SQLite demands of a registered VFS.
        let code = unsafe { ffi::sqlite3_vfs_register(Box::leak(vfs), 0) };
        assert_eq!(code, ffi::SQLITE_OK, "SQLite takes the simulated disk");
    });
}

static METHODS: ffi::sqlite3_io_methods = ffi::sqlite3_io_methods {
    iVersion: 2,
    xClose: Some(close),
    xRead: Some(read),
    xWrite: Some(write),
    xTruncate: Some(truncate),
    xSync: Some(sync),
    xFileSize: Some(file_size),
    xLock: Some(lock),
    xUnlock: Some(unlock),
    xCheckReservedLock: Some(check_reserved_lock),
    xFileControl: Some(file_control),
    xSectorSize: Some(sector_size),
    xDeviceCharacteristics: Some(device_characteristics),
    xShmMap: Some(shm_map),
    xShmLock: Some(shm_lock),
    xShmBarrier: Some(shm_barrier),
    xShmUnmap: Some(shm_unmap),
    xFetch: None,
    xUnfetch: None,
};

/// Ours of an open file.
///
/// # Safety
/// `file` was opened by `open` and not closed, and nobody else has a reference to it: SQLite uses a connection from one
/// thread at a time.
unsafe fn ours<'a>(file: *mut ffi::sqlite3_file) -> &'a mut Open {
    // SAFETY: as promised by the caller; `open` made both parts.
    unsafe { &mut *(*file.cast::<File>()).open }
}

/// The name as text.
///
/// # Safety
/// `name` is null or a C string.
unsafe fn text(name: *const c_char) -> Option<String> {
    // SAFETY: as promised by the caller.
    (!name.is_null()).then(|| unsafe { CStr::from_ptr(name) }.to_string_lossy().into_owned())
}

unsafe extern "C" fn open(
    _: *mut ffi::sqlite3_vfs,
    name: ffi::sqlite3_filename,
    file: *mut ffi::sqlite3_file,
    flags: c_int,
    out_flags: *mut c_int,
) -> c_int {
    // SAFETY: SQLite gives a C string or null.
    let name = unsafe { text(name) };
    let found = disk(|disk| {
        let Some(name) = &name else { return Some(Rc::default()) };
        match disk.files.get(name) {
            Some(inode) => Some(Rc::clone(inode)),
            None if flags & ffi::SQLITE_OPEN_CREATE != 0 && !disk.dead => {
                let inode = Rc::<RefCell<Inode>>::default();
                disk.files.insert(name.clone(), Rc::clone(&inode));
                Some(inode)
            }
            None => None,
        }
    });
    let file = file.cast::<File>();
    let Some(inode) = found else {
        // SAFETY: SQLite gives room for a `File`; without methods it does not close it.
        unsafe { (*file).base.pMethods = ptr::null() };
        return ffi::SQLITE_CANTOPEN;
    };
    let open = Open { name, inode, level: ffi::SQLITE_LOCK_NONE, shared: 0, exclusive: 0, uses_shm: false };
    // SAFETY: as above, and `out_flags` is null or points to an int.
    unsafe {
        (*file).base.pMethods = &raw const METHODS;
        (*file).open = Box::into_raw(Box::new(open));
        if !out_flags.is_null() {
            *out_flags = flags;
        }
    }
    ffi::SQLITE_OK
}

unsafe extern "C" fn close(file: *mut ffi::sqlite3_file) -> c_int {
    // SAFETY: SQLite closes what it opened, once.
    unsafe {
        unlock(file, ffi::SQLITE_LOCK_NONE);
        shm_unmap(file, 0);
        drop(Box::from_raw((*file.cast::<File>()).open));
        (*file).pMethods = ptr::null();
    }
    ffi::SQLITE_OK
}

unsafe extern "C" fn read(
    file: *mut ffi::sqlite3_file,
    out: *mut c_void,
    amount: c_int,
    at: ffi::sqlite3_int64,
) -> c_int {
    // SAFETY: SQLite reads from an open file, into a buffer of that size.
    let (open, out) =
        unsafe { (ours(file), std::slice::from_raw_parts_mut(out.cast::<u8>(), amount as usize)) };
    let inode = open.inode.borrow();
    let from = (at as usize).min(inode.now.len());
    let there = &inode.now[from..(from + out.len()).min(inode.now.len())];
    out[..there.len()].copy_from_slice(there);
    out[there.len()..].fill(0);
    if there.len() == amount as usize { ffi::SQLITE_OK } else { ffi::SQLITE_IOERR_SHORT_READ }
}

unsafe extern "C" fn write(
    file: *mut ffi::sqlite3_file,
    bytes: *const c_void,
    amount: c_int,
    at: ffi::sqlite3_int64,
) -> c_int {
    // SAFETY: SQLite writes to an open file, from a buffer of that size.
    let (open, bytes) =
        unsafe { (ours(file), std::slice::from_raw_parts(bytes.cast::<u8>(), amount as usize)) };
    let at = at as usize;
    let mut inode = open.inode.borrow_mut();
    let grows = at + bytes.len() > inode.now.len();
    let verdict = if open.name.is_some() { disk(|disk| disk.step(Step::Write, grows)) } else { Verdict::Go };
    match verdict {
        Verdict::Go => inode.write(at, bytes),
        Verdict::Partly(mut dice) => {
            // Of the file's sectors that it touches, the first few.
            let whole = bytes.len().div_ceil(SECTOR) as u64;
            let kept = (dice.between(0, whole) as usize * SECTOR).saturating_sub(at % SECTOR);
            inode.write(at, &bytes[..kept.min(bytes.len())]);
            return ffi::SQLITE_IOERR_WRITE;
        }
        Verdict::No(code) => return code,
    }
    ffi::SQLITE_OK
}

unsafe extern "C" fn truncate(file: *mut ffi::sqlite3_file, size: ffi::sqlite3_int64) -> c_int {
    // SAFETY: SQLite truncates an open file.
    let open = unsafe { ours(file) };
    match disk(|disk| disk.step(Step::Truncate, false)) {
        Verdict::Go | Verdict::Partly(_) => open.inode.borrow_mut().truncate(size as usize),
        Verdict::No(code) => return code,
    }
    ffi::SQLITE_OK
}

unsafe extern "C" fn sync(file: *mut ffi::sqlite3_file, _: c_int) -> c_int {
    // SAFETY: SQLite syncs an open file.
    let open = unsafe { ours(file) };
    match disk(|disk| disk.step(Step::Sync, false)) {
        Verdict::Go => open.inode.borrow_mut().sync(),
        Verdict::Partly(mut dice) => {
            open.inode.borrow_mut().sync_partly(&mut dice);
            return ffi::SQLITE_IOERR_FSYNC;
        }
        Verdict::No(code) => {
            disk(|disk| {
                if !disk.dead {
                    // What cannot be copied is thrown away, and nobody is promised anything.
                    disk.sync_failed |= !open.name.as_deref().is_some_and(past::is_unfinished);
                    open.inode.borrow_mut().sync_fails(&mut disk.dice);
                }
            });
            return code;
        }
    }
    ffi::SQLITE_OK
}

unsafe extern "C" fn file_size(file: *mut ffi::sqlite3_file, size: *mut ffi::sqlite3_int64) -> c_int {
    // SAFETY: an open file, and a place for the answer.
    unsafe { *size = ours(file).inode.borrow().now.len() as i64 };
    ffi::SQLITE_OK
}

unsafe extern "C" fn lock(file: *mut ffi::sqlite3_file, level: c_int) -> c_int {
    // SAFETY: SQLite locks an open file.
    let open = unsafe { ours(file) };
    if open.level >= level {
        return ffi::SQLITE_OK;
    }
    let mut inode = open.inode.borrow_mut();
    let locks = &mut inode.locks;
    let (is_shared, has_reserved) =
        (open.level >= ffi::SQLITE_LOCK_SHARED, open.level >= ffi::SQLITE_LOCK_RESERVED);
    if !is_shared {
        if locks.pending || locks.exclusive {
            return ffi::SQLITE_BUSY;
        }
        locks.shared += 1;
        open.level = ffi::SQLITE_LOCK_SHARED;
    }
    if level >= ffi::SQLITE_LOCK_RESERVED && !has_reserved {
        if locks.reserved {
            return ffi::SQLITE_BUSY;
        }
        locks.reserved = true;
        open.level = ffi::SQLITE_LOCK_RESERVED;
    }
    if level == ffi::SQLITE_LOCK_EXCLUSIVE {
        locks.pending = true;
        open.level = ffi::SQLITE_LOCK_PENDING;
        if locks.shared > 1 {
            return ffi::SQLITE_BUSY;
        }
        locks.exclusive = true;
        open.level = ffi::SQLITE_LOCK_EXCLUSIVE;
    }
    ffi::SQLITE_OK
}

unsafe extern "C" fn unlock(file: *mut ffi::sqlite3_file, level: c_int) -> c_int {
    // SAFETY: SQLite unlocks an open file.
    let open = unsafe { ours(file) };
    let mut inode = open.inode.borrow_mut();
    let locks = &mut inode.locks;
    if open.level >= ffi::SQLITE_LOCK_EXCLUSIVE {
        locks.exclusive = false;
    }
    if open.level >= ffi::SQLITE_LOCK_PENDING {
        locks.pending = false;
    }
    if open.level >= ffi::SQLITE_LOCK_RESERVED {
        locks.reserved = false;
    }
    if open.level >= ffi::SQLITE_LOCK_SHARED && level == ffi::SQLITE_LOCK_NONE {
        // A new process finds no locks, whatever the one before it held.
        locks.shared = locks.shared.saturating_sub(1);
    }
    open.level = open.level.min(level);
    ffi::SQLITE_OK
}

unsafe extern "C" fn check_reserved_lock(file: *mut ffi::sqlite3_file, out: *mut c_int) -> c_int {
    // SAFETY: an open file, and a place for the answer.
    unsafe { *out = c_int::from(ours(file).inode.borrow().locks.reserved) };
    ffi::SQLITE_OK
}

unsafe extern "C" fn file_control(_: *mut ffi::sqlite3_file, _: c_int, _: *mut c_void) -> c_int {
    ffi::SQLITE_NOTFOUND
}

unsafe extern "C" fn sector_size(_: *mut ffi::sqlite3_file) -> c_int {
    4096
}

unsafe extern "C" fn device_characteristics(_: *mut ffi::sqlite3_file) -> c_int {
    // As SQLite takes any disk of a Unix to be.
    ffi::SQLITE_IOCAP_POWERSAFE_OVERWRITE
}

unsafe extern "C" fn shm_map(
    file: *mut ffi::sqlite3_file,
    page: c_int,
    size: c_int,
    extend: c_int,
    out: *mut *mut c_void,
) -> c_int {
    // SAFETY: SQLite maps an open file.
    let open = unsafe { ours(file) };
    let mut inode = open.inode.borrow_mut();
    let shm = &mut inode.shm;
    if !open.uses_shm {
        open.uses_shm = true;
        shm.users += 1;
    }
    while shm.regions.len() <= page as usize {
        if extend == 0 {
            // SAFETY: a place for the answer.
            unsafe { *out = ptr::null_mut() };
            return ffi::SQLITE_OK;
        }
        if disk(|disk: &mut Disk| disk.full && !disk.onlooker) {
            disk(|disk| disk.errno = 28);
            return ffi::SQLITE_IOERR_SHMSIZE;
        }
        shm.regions.push(vec![0; size as usize].into_boxed_slice());
    }
    // SAFETY: a place for the answer. The region does not move: it is a box of its own, kept until the last user is gone.
    unsafe { *out = shm.regions[page as usize].as_mut_ptr().cast() };
    ffi::SQLITE_OK
}

unsafe extern "C" fn shm_lock(file: *mut ffi::sqlite3_file, offset: c_int, n: c_int, flags: c_int) -> c_int {
    // SAFETY: SQLite locks an open file.
    let open = unsafe { ours(file) };
    let mut inode = open.inode.borrow_mut();
    let shm = &mut inode.shm;
    let slots = offset as usize..(offset + n) as usize;
    if flags & ffi::SQLITE_SHM_UNLOCK != 0 {
        for slot in slots {
            let bit = 1 << slot;
            if open.shared & bit != 0 {
                shm.shared[slot] = shm.shared[slot].saturating_sub(1);
            }
            if open.exclusive & bit != 0 {
                shm.exclusive[slot] = false;
            }
            open.shared &= !bit;
            open.exclusive &= !bit;
        }
        return ffi::SQLITE_OK;
    }
    let wants_all = flags & ffi::SQLITE_SHM_EXCLUSIVE != 0;
    let free = slots.clone().all(|slot| {
        let bit = 1 << slot;
        let others = shm.shared[slot] - u32::from(open.shared & bit != 0);
        (open.exclusive & bit != 0 || !shm.exclusive[slot]) && (!wants_all || others == 0)
    });
    if !free {
        return ffi::SQLITE_BUSY;
    }
    for slot in slots {
        let bit = 1 << slot;
        if wants_all {
            shm.exclusive[slot] = true;
            open.exclusive |= bit;
        } else if open.shared & bit == 0 {
            shm.shared[slot] += 1;
            open.shared |= bit;
        }
    }
    ffi::SQLITE_OK
}

unsafe extern "C" fn shm_barrier(_: *mut ffi::sqlite3_file) {}

unsafe extern "C" fn shm_unmap(file: *mut ffi::sqlite3_file, _: c_int) -> c_int {
    // SAFETY: SQLite unmaps an open file.
    let open = unsafe { ours(file) };
    if open.uses_shm {
        open.uses_shm = false;
        let mut inode = open.inode.borrow_mut();
        let shm = &mut inode.shm;
        shm.users = shm.users.saturating_sub(1);
        if shm.users == 0 {
            *shm = super::disk::Shm::default();
        }
    }
    ffi::SQLITE_OK
}

unsafe extern "C" fn delete(_: *mut ffi::sqlite3_vfs, name: *const c_char, sync_folder: c_int) -> c_int {
    // SAFETY: SQLite names what it deletes.
    let Some(name) = (unsafe { text(name) }) else { return ffi::SQLITE_OK };
    let deleted = disk(|disk| match disk.step(Step::Delete, false) {
        Verdict::Go | Verdict::Partly(_) => Ok(disk.delete(&name, sync_folder != 0)),
        Verdict::No(code) => Err(code),
    });
    match deleted {
        Ok(true) => ffi::SQLITE_OK,
        Ok(false) => ffi::SQLITE_IOERR_DELETE_NOENT,
        Err(code) => code,
    }
}

unsafe extern "C" fn access(
    _: *mut ffi::sqlite3_vfs,
    name: *const c_char,
    flags: c_int,
    out: *mut c_int,
) -> c_int {
    // SAFETY: SQLite names what it looks for.
    let name = unsafe { text(name) }.unwrap_or_default();
    let there = disk(|disk| {
        let found = disk.files.get(&name);
        found.is_some_and(|it| flags != ffi::SQLITE_ACCESS_EXISTS || !it.borrow().now.is_empty())
    });
    // SAFETY: a place for the answer.
    unsafe { *out = c_int::from(there) };
    ffi::SQLITE_OK
}

unsafe extern "C" fn full_pathname(
    _: *mut ffi::sqlite3_vfs,
    name: *const c_char,
    room: c_int,
    out: *mut c_char,
) -> c_int {
    // SAFETY: a C string, and room for a copy of it, as long as it fits.
    unsafe {
        let bytes = CStr::from_ptr(name).to_bytes_with_nul();
        if bytes.len() > room as usize {
            return ffi::SQLITE_CANTOPEN;
        }
        ptr::copy_nonoverlapping(bytes.as_ptr().cast(), out, bytes.len());
    }
    ffi::SQLITE_OK
}

unsafe extern "C" fn randomness(_: *mut ffi::sqlite3_vfs, amount: c_int, out: *mut c_char) -> c_int {
    // SAFETY: SQLite gives so much room.
    let out = unsafe { std::slice::from_raw_parts_mut(out.cast::<u8>(), amount as usize) };
    disk(|disk| out.iter_mut().for_each(|byte| *byte = disk.dice.below(256) as u8));
    amount
}

unsafe extern "C" fn sleep(_: *mut ffi::sqlite3_vfs, micros: c_int) -> c_int {
    micros
}

unsafe extern "C" fn current_time(_: *mut ffi::sqlite3_vfs, out: *mut f64) -> c_int {
    // SAFETY: a place for the answer.
    unsafe { *out = 2_461_000.5 };
    ffi::SQLITE_OK
}

unsafe extern "C" fn current_time_int64(_: *mut ffi::sqlite3_vfs, out: *mut ffi::sqlite3_int64) -> c_int {
    // SAFETY: a place for the answer.
    unsafe { *out = 212_630_443_200_000 };
    ffi::SQLITE_OK
}

unsafe extern "C" fn last_error(_: *mut ffi::sqlite3_vfs, _: c_int, _: *mut c_char) -> c_int {
    disk(|disk| disk.errno)
}
