; Rounding to bfloat16 where the CPU has no instruction for it: LLVM then calls these two functions, which libgcc has only
; since version 13. Round to nearest, ties to even; a NaN stays one.

define hidden bfloat @__truncsfbf2(float %x) {
  %bits = bitcast float %x to i32
  %high = lshr i32 %bits, 16
  %odd = and i32 %high, 1
  %bias = add i32 %odd, 32767
  %sum = add i32 %bits, %bias
  %rounded = lshr i32 %sum, 16
  %quiet = or i32 %high, 64
  %nan = fcmp uno float %x, 0.0
  %chosen = select i1 %nan, i32 %quiet, i32 %rounded
  %short = trunc i32 %chosen to i16
  %result = bitcast i16 %short to bfloat
  ret bfloat %result
}

; First to float, rounding to odd, so that rounding twice is rounding once (Boldo and Melquiond 2008).
define hidden bfloat @__truncdfbf2(double %x) {
  %near = fptrunc double %x to float
  %back = fpext float %near to double
  %inexact = fcmp one double %back, %x
  %magnitude = call double @llvm.fabs.f64(double %x)
  %reached = call double @llvm.fabs.f64(double %back)
  %beyond = fcmp ogt double %reached, %magnitude
  %bits = bitcast float %near to i32
  %step = zext i1 %beyond to i32
  %toward = sub i32 %bits, %step
  %sticky = zext i1 %inexact to i32
  %odd = or i32 %toward, %sticky
  %narrow = bitcast i32 %odd to float
  %result = call bfloat @__truncsfbf2(float %narrow)
  ret bfloat %result
}

declare double @llvm.fabs.f64(double)
