//! The first process of every pod sandbox: holds the pod's namespaces, reaps what is orphaned in them, ends on TERM or INT.
//!
//! A program of its own, static and without any library, so that an image with nothing else in it can run it. It speaks to the
//! kernel in five places and knows nothing of the daemon. `build/pause.rs` compiles it, `runtime/image/pause.rs` makes an image
//! of it.
//!
//! No handlers: the signals are blocked and taken one by one. A blocked signal stays pending even for PID 1, for which the
//! kernel drops signals with a default action.

#![no_std]
#![no_main]

use core::arch::{asm, global_asm};

/// Numbers of the system calls and registers to put them in.
#[cfg(target_arch = "x86_64")]
mod kernel {
    pub const RT_SIGPROCMASK: usize = 14;
    pub const WAIT4: usize = 61;
    pub const RT_SIGTIMEDWAIT: usize = 128;
    pub const EXIT_GROUP: usize = 231;
}

#[cfg(target_arch = "aarch64")]
mod kernel {
    pub const EXIT_GROUP: usize = 94;
    pub const RT_SIGPROCMASK: usize = 135;
    pub const RT_SIGTIMEDWAIT: usize = 137;
    pub const WAIT4: usize = 260;
}

// The kernel enters with an aligned stack and no return address, which is not what a Rust function expects.
#[cfg(target_arch = "x86_64")]
global_asm!(
    ".globl _start",
    "_start:",
    "xor ebp, ebp",
    "and rsp, -16",
    "call {main}",
    "ud2",
    main = sym main,
);

#[cfg(target_arch = "aarch64")]
global_asm!(
    ".globl _start",
    "_start:",
    "mov x29, xzr",
    "mov x30, xzr",
    "bl {main}",
    "udf #0",
    main = sym main,
);

const SIGINT: isize = 2;
const SIGTERM: isize = 15;
const SIGCHLD: isize = 17;

const SIG_BLOCK: usize = 0;
const WNOHANG: usize = 1;
const ANY_CHILD: usize = usize::MAX;
const NULL: usize = 0;

extern "C" fn main() -> ! {
    let signals: u64 = bit(SIGINT) | bit(SIGTERM) | bit(SIGCHLD);
    let set = &raw const signals as usize;
    let size = size_of_val(&signals);
    system_call(kernel::RT_SIGPROCMASK, [SIG_BLOCK, set, NULL, size]);
    // Children that ended before the signals were blocked left no signal behind.
    reap();
    loop {
        match system_call(kernel::RT_SIGTIMEDWAIT, [set, NULL, NULL, size]) {
            SIGINT | SIGTERM => exit(0),
            SIGCHLD => reap(),
            // Woken by a stop and continue: wait on.
            _ => {}
        }
    }
}

const fn bit(signal: isize) -> u64 {
    1 << (signal - 1)
}

/// Takes every ended child; one signal can stand for many.
fn reap() {
    while system_call(kernel::WAIT4, [ANY_CHILD, NULL, WNOHANG, NULL]) > 0 {}
}

fn exit(code: usize) -> ! {
    loop {
        system_call(kernel::EXIT_GROUP, [code, 0, 0, 0]);
    }
}

/// A system call with up to four arguments; a negative result is an error number.
#[cfg(target_arch = "x86_64")]
fn system_call(number: usize, [a, b, c, d]: [usize; 4]) -> isize {
    let result: isize;
    // SAFETY: the pointers among the arguments are to locals that outlive the call, or null where the kernel allows it; the
    // kernel changes no memory of ours (every output argument is null) and no register but the three named.
    unsafe {
        asm!(
            "syscall",
            inlateout("rax") number => result,
            in("rdi") a,
            in("rsi") b,
            in("rdx") c,
            in("r10") d,
            lateout("rcx") _,
            lateout("r11") _,
            options(nostack),
        );
    }
    result
}

/// A system call with up to four arguments; a negative result is an error number.
#[cfg(target_arch = "aarch64")]
fn system_call(number: usize, [a, b, c, d]: [usize; 4]) -> isize {
    let result: isize;
    // SAFETY: as above.
    unsafe {
        asm!(
            "svc #0",
            in("x8") number,
            inlateout("x0") a => result,
            in("x1") b,
            in("x2") c,
            in("x3") d,
            options(nostack),
        );
    }
    result
}

#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    exit(1)
}
