// What the entry of a program calls: where it is (journal), when (trace), and MPI with every return code looked at.
// MpiToLlvm copies what a program needs from here. Handles come from the engine, so no MPI's constants stand here.

llvm.mlir.global external @avial_comm(0 : i64) : i64            // a communicator of exactly the program's ranks
llvm.mlir.global external @avial_byte(0 : i64) : i64            // MPI_BYTE
llvm.mlir.global external @avial_status_ignore(0 : i64) : i64   // MPI_STATUS_IGNORE
llvm.mlir.global external @avial_error(0 : i64) : i64           // first nonzero return code | step << 32
llvm.mlir.global external @avial_outside_words() : !llvm.array<6 x i64> {  // text, dimension, index, size, line, column
  %zeros = llvm.mlir.zero : !llvm.array<6 x i64>
  llvm.return %zeros : !llvm.array<6 x i64>
}
llvm.mlir.global external @avial_journal() : !llvm.ptr {        // one i64: the step that runs now
  %null = llvm.mlir.zero : !llvm.ptr
  llvm.return %null : !llvm.ptr
}
llvm.mlir.global external @avial_trace() : !llvm.ptr {          // 2 timespec for each step: its start and where a copy meets
                                                                // its message; then the end. Or null
  %null = llvm.mlir.zero : !llvm.ptr
  llvm.return %null : !llvm.ptr
}
llvm.mlir.global external @avial_bounds() : !llvm.ptr {         // site + 1, dimension, index, size
  %null = llvm.mlir.zero : !llvm.ptr
  llvm.return %null : !llvm.ptr
}

llvm.mlir.global internal @avial.resume() {alignment = 16 : i64} : !llvm.array<128 x i64> {  // a jmp_buf, of any system
  %none = llvm.mlir.zero : !llvm.array<128 x i64>
  llvm.return %none : !llvm.array<128 x i64>
}

llvm.func @clock_gettime(i32, !llvm.ptr) -> i32

llvm.func internal @avial.begin(%step: i64) attributes {passthrough = ["noinline"]} {
  %journal_address = llvm.mlir.addressof @avial_journal : !llvm.ptr
  %journal = llvm.load %journal_address : !llvm.ptr -> !llvm.ptr
  llvm.store volatile %step, %journal : i64, !llvm.ptr
  %two = llvm.mlir.constant(2 : i64) : i64
  %slot = llvm.mul %step, %two : i64
  llvm.call @avial.stamp(%slot) : (i64) -> ()
  llvm.return
}

// In a step that packs and sends, or receives and unpacks: between the two.
llvm.func internal @avial.mid(%step: i64) attributes {passthrough = ["noinline"]} {
  %one = llvm.mlir.constant(1 : i64) : i64
  %two = llvm.mlir.constant(2 : i64) : i64
  %even = llvm.mul %step, %two : i64
  %slot = llvm.add %even, %one : i64
  llvm.call @avial.stamp(%slot) : (i64) -> ()
  llvm.return
}

// After the last step; before it, each step ends where the next begins.
llvm.func internal @avial.end(%step: i64) attributes {passthrough = ["noinline"]} {
  %two = llvm.mlir.constant(2 : i64) : i64
  %even = llvm.mul %step, %two : i64
  %slot = llvm.add %even, %two : i64
  llvm.call @avial.stamp(%slot) : (i64) -> ()
  llvm.return
}

llvm.func internal @avial.stamp(%slot: i64) {
  %null = llvm.mlir.zero : !llvm.ptr
  %clock = llvm.mlir.constant(1 : i32) {avial.clock} : i32
  %trace_address = llvm.mlir.addressof @avial_trace : !llvm.ptr
  %trace = llvm.load %trace_address : !llvm.ptr -> !llvm.ptr
  %off = llvm.icmp "eq" %trace, %null : !llvm.ptr
  llvm.cond_br %off, ^done, ^stamp
^stamp:
  %time = llvm.getelementptr %trace[%slot] : (!llvm.ptr, i64) -> !llvm.ptr, !llvm.array<2 x i64>
  %ignored = llvm.call @clock_gettime(%clock, %time) : (i32, !llvm.ptr) -> i32
  llvm.br ^done
^done:
  llvm.return
}

llvm.func @MPI_Comm_rank(i64, !llvm.ptr) -> i32
llvm.func @MPI_Isend(!llvm.ptr, i32, i64, i32, i32, i64, !llvm.ptr) -> i32
llvm.func @MPI_Irecv(!llvm.ptr, i32, i64, i32, i32, i64, !llvm.ptr) -> i32
llvm.func @MPI_Isend_c(!llvm.ptr, i64, i64, i32, i32, i64, !llvm.ptr) -> i32
llvm.func @MPI_Irecv_c(!llvm.ptr, i64, i64, i32, i32, i64, !llvm.ptr) -> i32
llvm.func @MPI_Send(!llvm.ptr, i32, i64, i32, i32, i64) -> i32
llvm.func @MPI_Recv(!llvm.ptr, i32, i64, i32, i32, i64, i64) -> i32
llvm.func @MPI_Send_c(!llvm.ptr, i64, i64, i32, i32, i64) -> i32
llvm.func @MPI_Recv_c(!llvm.ptr, i64, i64, i32, i32, i64, i64) -> i32
llvm.func @MPI_Wait(!llvm.ptr, i64) -> i32
llvm.func @MPI_Barrier(i64) -> i32

// Keeps the first return code that is not MPI_SUCCESS, with the step it came from.
llvm.func internal @avial.check(%code: i32) attributes {passthrough = ["noinline"]} {
  %zero = llvm.mlir.constant(0 : i64) : i64
  %bits = llvm.mlir.constant(32 : i64) : i64
  %wide = llvm.zext %code : i32 to i64
  %fine = llvm.icmp "eq" %wide, %zero : i64
  llvm.cond_br %fine, ^done, ^failed
^failed:
  %journal_address = llvm.mlir.addressof @avial_journal : !llvm.ptr
  %journal = llvm.load %journal_address : !llvm.ptr -> !llvm.ptr
  %step = llvm.load %journal : !llvm.ptr -> i64
  %high = llvm.shl %step, %bits : i64
  %error = llvm.or %high, %wide : i64
  %error_address = llvm.mlir.addressof @avial_error : !llvm.ptr
  llvm.store %error, %error_address : i64, !llvm.ptr
  llvm.br ^done
^done:
  llvm.return
}

// After an error no more messages: whoever waits for this rank is stopped by the engine.
llvm.func internal @avial.sound() -> i1 {
  %zero = llvm.mlir.constant(0 : i64) : i64
  %error_address = llvm.mlir.addressof @avial_error : !llvm.ptr
  %error = llvm.load %error_address : !llvm.ptr -> i64
  %sound = llvm.icmp "eq" %error, %zero : i64
  llvm.return %sound : i1
}

llvm.func internal @avial.rank() -> i32 {
  %one = llvm.mlir.constant(1 : i64) : i64
  %minus = llvm.mlir.constant(-1 : i32) : i32
  %answer = llvm.alloca %one x i32 : (i64) -> !llvm.ptr
  llvm.store %minus, %answer : i32, !llvm.ptr
  %comm_address = llvm.mlir.addressof @avial_comm : !llvm.ptr
  %comm = llvm.load %comm_address : !llvm.ptr -> i64
  %code = llvm.call @MPI_Comm_rank(%comm, %answer) : (i64, !llvm.ptr) -> i32
  llvm.call @avial.check(%code) : (i32) -> ()
  %rank = llvm.load %answer : !llvm.ptr -> i32
  llvm.return %rank : i32
}

llvm.func internal @avial.isend(%buffer: !llvm.ptr, %nbytes: i64, %peer: i32, %tag: i32, %request: !llvm.ptr) attributes {passthrough = ["noinline"]} {
  %sound = llvm.call @avial.sound() : () -> i1
  llvm.cond_br %sound, ^go, ^done
^go:
  %count = llvm.trunc %nbytes : i64 to i32
  %comm_address = llvm.mlir.addressof @avial_comm : !llvm.ptr
  %comm = llvm.load %comm_address : !llvm.ptr -> i64
  %byte_address = llvm.mlir.addressof @avial_byte : !llvm.ptr
  %byte = llvm.load %byte_address : !llvm.ptr -> i64
  %code = llvm.call @MPI_Isend(%buffer, %count, %byte, %peer, %tag, %comm, %request) : (!llvm.ptr, i32, i64, i32, i32, i64, !llvm.ptr) -> i32
  llvm.call @avial.check(%code) : (i32) -> ()
  llvm.br ^done
^done:
  llvm.return
}

llvm.func internal @avial.irecv(%buffer: !llvm.ptr, %nbytes: i64, %peer: i32, %tag: i32, %request: !llvm.ptr) attributes {passthrough = ["noinline"]} {
  %sound = llvm.call @avial.sound() : () -> i1
  llvm.cond_br %sound, ^go, ^done
^go:
  %count = llvm.trunc %nbytes : i64 to i32
  %comm_address = llvm.mlir.addressof @avial_comm : !llvm.ptr
  %comm = llvm.load %comm_address : !llvm.ptr -> i64
  %byte_address = llvm.mlir.addressof @avial_byte : !llvm.ptr
  %byte = llvm.load %byte_address : !llvm.ptr -> i64
  %code = llvm.call @MPI_Irecv(%buffer, %count, %byte, %peer, %tag, %comm, %request) : (!llvm.ptr, i32, i64, i32, i32, i64, !llvm.ptr) -> i32
  llvm.call @avial.check(%code) : (i32) -> ()
  llvm.br ^done
^done:
  llvm.return
}

// For messages of 2 GiB and more: MPI 4's 64-bit counts.
llvm.func internal @avial.isend_large(%buffer: !llvm.ptr, %nbytes: i64, %peer: i32, %tag: i32, %request: !llvm.ptr) attributes {passthrough = ["noinline"]} {
  %sound = llvm.call @avial.sound() : () -> i1
  llvm.cond_br %sound, ^go, ^done
^go:
  %comm_address = llvm.mlir.addressof @avial_comm : !llvm.ptr
  %comm = llvm.load %comm_address : !llvm.ptr -> i64
  %byte_address = llvm.mlir.addressof @avial_byte : !llvm.ptr
  %byte = llvm.load %byte_address : !llvm.ptr -> i64
  %code = llvm.call @MPI_Isend_c(%buffer, %nbytes, %byte, %peer, %tag, %comm, %request) : (!llvm.ptr, i64, i64, i32, i32, i64, !llvm.ptr) -> i32
  llvm.call @avial.check(%code) : (i32) -> ()
  llvm.br ^done
^done:
  llvm.return
}

llvm.func internal @avial.irecv_large(%buffer: !llvm.ptr, %nbytes: i64, %peer: i32, %tag: i32, %request: !llvm.ptr) attributes {passthrough = ["noinline"]} {
  %sound = llvm.call @avial.sound() : () -> i1
  llvm.cond_br %sound, ^go, ^done
^go:
  %comm_address = llvm.mlir.addressof @avial_comm : !llvm.ptr
  %comm = llvm.load %comm_address : !llvm.ptr -> i64
  %byte_address = llvm.mlir.addressof @avial_byte : !llvm.ptr
  %byte = llvm.load %byte_address : !llvm.ptr -> i64
  %code = llvm.call @MPI_Irecv_c(%buffer, %nbytes, %byte, %peer, %tag, %comm, %request) : (!llvm.ptr, i64, i64, i32, i32, i64, !llvm.ptr) -> i32
  llvm.call @avial.check(%code) : (i32) -> ()
  llvm.br ^done
^done:
  llvm.return
}

// A message whose wait comes at once.
llvm.func internal @avial.send(%buffer: !llvm.ptr, %nbytes: i64, %peer: i32, %tag: i32) attributes {passthrough = ["noinline"]} {
  %sound = llvm.call @avial.sound() : () -> i1
  llvm.cond_br %sound, ^go, ^done
^go:
  %count = llvm.trunc %nbytes : i64 to i32
  %comm_address = llvm.mlir.addressof @avial_comm : !llvm.ptr
  %comm = llvm.load %comm_address : !llvm.ptr -> i64
  %byte_address = llvm.mlir.addressof @avial_byte : !llvm.ptr
  %byte = llvm.load %byte_address : !llvm.ptr -> i64
  %code = llvm.call @MPI_Send(%buffer, %count, %byte, %peer, %tag, %comm) : (!llvm.ptr, i32, i64, i32, i32, i64) -> i32
  llvm.call @avial.check(%code) : (i32) -> ()
  llvm.br ^done
^done:
  llvm.return
}

llvm.func internal @avial.recv(%buffer: !llvm.ptr, %nbytes: i64, %peer: i32, %tag: i32) attributes {passthrough = ["noinline"]} {
  %sound = llvm.call @avial.sound() : () -> i1
  llvm.cond_br %sound, ^go, ^done
^go:
  %count = llvm.trunc %nbytes : i64 to i32
  %comm_address = llvm.mlir.addressof @avial_comm : !llvm.ptr
  %comm = llvm.load %comm_address : !llvm.ptr -> i64
  %byte_address = llvm.mlir.addressof @avial_byte : !llvm.ptr
  %byte = llvm.load %byte_address : !llvm.ptr -> i64
  %ignore_address = llvm.mlir.addressof @avial_status_ignore : !llvm.ptr
  %ignore = llvm.load %ignore_address : !llvm.ptr -> i64
  %code = llvm.call @MPI_Recv(%buffer, %count, %byte, %peer, %tag, %comm, %ignore) : (!llvm.ptr, i32, i64, i32, i32, i64, i64) -> i32
  llvm.call @avial.check(%code) : (i32) -> ()
  llvm.br ^done
^done:
  llvm.return
}

llvm.func internal @avial.send_large(%buffer: !llvm.ptr, %nbytes: i64, %peer: i32, %tag: i32) attributes {passthrough = ["noinline"]} {
  %sound = llvm.call @avial.sound() : () -> i1
  llvm.cond_br %sound, ^go, ^done
^go:
  %comm_address = llvm.mlir.addressof @avial_comm : !llvm.ptr
  %comm = llvm.load %comm_address : !llvm.ptr -> i64
  %byte_address = llvm.mlir.addressof @avial_byte : !llvm.ptr
  %byte = llvm.load %byte_address : !llvm.ptr -> i64
  %code = llvm.call @MPI_Send_c(%buffer, %nbytes, %byte, %peer, %tag, %comm) : (!llvm.ptr, i64, i64, i32, i32, i64) -> i32
  llvm.call @avial.check(%code) : (i32) -> ()
  llvm.br ^done
^done:
  llvm.return
}

llvm.func internal @avial.recv_large(%buffer: !llvm.ptr, %nbytes: i64, %peer: i32, %tag: i32) attributes {passthrough = ["noinline"]} {
  %sound = llvm.call @avial.sound() : () -> i1
  llvm.cond_br %sound, ^go, ^done
^go:
  %comm_address = llvm.mlir.addressof @avial_comm : !llvm.ptr
  %comm = llvm.load %comm_address : !llvm.ptr -> i64
  %byte_address = llvm.mlir.addressof @avial_byte : !llvm.ptr
  %byte = llvm.load %byte_address : !llvm.ptr -> i64
  %ignore_address = llvm.mlir.addressof @avial_status_ignore : !llvm.ptr
  %ignore = llvm.load %ignore_address : !llvm.ptr -> i64
  %code = llvm.call @MPI_Recv_c(%buffer, %nbytes, %byte, %peer, %tag, %comm, %ignore) : (!llvm.ptr, i64, i64, i32, i32, i64, i64) -> i32
  llvm.call @avial.check(%code) : (i32) -> ()
  llvm.br ^done
^done:
  llvm.return
}

llvm.func internal @avial.wait(%request: !llvm.ptr) attributes {passthrough = ["noinline"]} {
  %sound = llvm.call @avial.sound() : () -> i1
  llvm.cond_br %sound, ^go, ^done
^go:
  %ignore_address = llvm.mlir.addressof @avial_status_ignore : !llvm.ptr
  %ignore = llvm.load %ignore_address : !llvm.ptr -> i64
  %code = llvm.call @MPI_Wait(%request, %ignore) : (!llvm.ptr, i64) -> i32
  llvm.call @avial.check(%code) : (i32) -> ()
  llvm.br ^done
^done:
  llvm.return
}

llvm.func internal @avial.barrier() attributes {passthrough = ["noinline"]} {
  %sound = llvm.call @avial.sound() : () -> i1
  llvm.cond_br %sound, ^go, ^done
^go:
  %comm_address = llvm.mlir.addressof @avial_comm : !llvm.ptr
  %comm = llvm.load %comm_address : !llvm.ptr -> i64
  %code = llvm.call @MPI_Barrier(%comm) : (i64) -> i32
  llvm.call @avial.check(%code) : (i32) -> ()
  llvm.br ^done
^done:
  llvm.return
}

llvm.func @longjmp(!llvm.ptr, i32)

// An access outside its array: the first one is kept for the person who asks, and the program ends there.
llvm.func internal @avial.outside(%site: i64, %dimension: i64, %index: i64, %size: i64) attributes {passthrough = ["noinline", "cold"]} {
  %zero = llvm.mlir.constant(0 : i64) : i64
  %one = llvm.mlir.constant(1 : i64) : i64
  %address = llvm.mlir.addressof @avial_bounds : !llvm.ptr
  %record = llvm.load %address : !llvm.ptr -> !llvm.ptr
  %known = llvm.load %record : !llvm.ptr -> i64
  %first = llvm.icmp "eq" %known, %zero : i64
  llvm.cond_br %first, ^keep, ^done
^keep:
  %number = llvm.add %site, %one : i64
  llvm.store %number, %record : i64, !llvm.ptr
  %at1 = llvm.getelementptr %record[1] : (!llvm.ptr) -> !llvm.ptr, i64
  llvm.store %dimension, %at1 : i64, !llvm.ptr
  %at2 = llvm.getelementptr %record[2] : (!llvm.ptr) -> !llvm.ptr, i64
  llvm.store %index, %at2 : i64, !llvm.ptr
  %at3 = llvm.getelementptr %record[3] : (!llvm.ptr) -> !llvm.ptr, i64
  llvm.store %size, %at3 : i64, !llvm.ptr
  %resume = llvm.mlir.addressof @avial.resume : !llvm.ptr
  %code = llvm.mlir.constant(1 : i32) : i32
  llvm.call @longjmp(%resume, %code) : (!llvm.ptr, i32) -> ()
  llvm.br ^done
^done:
  llvm.return
}

// In a task: an access leaves its array, and the task ends before it. (The ownership runtime has one of its own.)
llvm.func internal @avial.leave(%phase: i64, %words: !llvm.ptr) attributes {passthrough = ["noinline", "cold"]} {
  %sound = llvm.call @avial.sound() : () -> i1
  llvm.cond_br %sound, ^first, ^done
^first:
  %code = llvm.mlir.constant(2147483397 : i32) : i32
  %to = llvm.mlir.addressof @avial_outside_words : !llvm.ptr
  %bytes = llvm.mlir.constant(48 : i64) : i64
  "llvm.intr.memcpy"(%to, %words, %bytes) <{isVolatile = false}> : (!llvm.ptr, !llvm.ptr, i64) -> ()
  llvm.call @avial.check(%code) : (i32) -> ()
  llvm.br ^done
^done:
  llvm.return
}

// In a task, or between two: an assertion does not hold, and whoever calls this returns. -1 stands for the dimension.
llvm.func internal @avial.fail(%text: !llvm.ptr, %line: i64, %column: i64) attributes {passthrough = ["noinline", "cold"]} {
  %minus = llvm.mlir.constant(-1 : i64) : i64
  %zero = llvm.mlir.constant(0 : i64) : i64
  %six = llvm.mlir.constant(6 : i64) : i64
  %address = llvm.ptrtoint %text : !llvm.ptr to i64
  %words = llvm.alloca %six x i64 : (i64) -> !llvm.ptr
  llvm.store %address, %words : i64, !llvm.ptr
  %at1 = llvm.getelementptr %words[1] : (!llvm.ptr) -> !llvm.ptr, i64
  llvm.store %minus, %at1 : i64, !llvm.ptr
  %at2 = llvm.getelementptr %words[2] : (!llvm.ptr) -> !llvm.ptr, i64
  llvm.store %zero, %at2 : i64, !llvm.ptr
  %at3 = llvm.getelementptr %words[3] : (!llvm.ptr) -> !llvm.ptr, i64
  llvm.store %zero, %at3 : i64, !llvm.ptr
  %at4 = llvm.getelementptr %words[4] : (!llvm.ptr) -> !llvm.ptr, i64
  llvm.store %line, %at4 : i64, !llvm.ptr
  %at5 = llvm.getelementptr %words[5] : (!llvm.ptr) -> !llvm.ptr, i64
  llvm.store %column, %at5 : i64, !llvm.ptr
  llvm.call @avial.leave(%minus, %words) : (i64, !llvm.ptr) -> ()
  llvm.return
}

llvm.func @dprintf(i32, !llvm.ptr, ...) -> i32
llvm.func @abort()

llvm.mlir.global internal constant @avial.assertion("%lld:%lld: an assertion does not hold: %s\0A\00")

// The same where nobody can return: the process ends, and the last line that it prints says why.
llvm.func internal @avial.die(%text: !llvm.ptr, %line: i64, %column: i64) attributes {passthrough = ["noreturn", "noinline", "cold"]} {
  %stderr = llvm.mlir.constant(2 : i32) : i32
  %words = llvm.mlir.addressof @avial.assertion : !llvm.ptr
  %ignored = llvm.call @dprintf(%stderr, %words, %line, %column, %text) vararg(!llvm.func<i32 (i32, ptr, ...)>) : (i32, !llvm.ptr, i64, i64, !llvm.ptr) -> i32
  llvm.call @abort() : () -> ()
  llvm.unreachable
}
