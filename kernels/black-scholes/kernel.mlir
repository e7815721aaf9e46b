func.func @kernel_black_scholes(%rate: ${T}, %volatility: ${T}, %price: memref<${N}x${T}>,
                                %strike: memref<${N}x${T}>, %years: memref<${N}x${T}>,
                                %call: memref<${N}x${T}>, %put: memref<${N}x${T}>) {
  ${extents}
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %one = arith.constant 1.0 : ${T}
  %half = arith.constant 0.5 : ${T}
  %root_half = arith.constant 0.70710678118654752 : ${T}
  %v2 = arith.mulf %volatility, %volatility : ${T}
  %half_v2 = arith.mulf %half, %v2 : ${T}
  %drift = arith.addf %rate, %half_v2 : ${T}
  %minus_rate = arith.negf %rate : ${T}
  scf.parallel (%i) = (%c0) to (%n) step (%c1) {
    %s = memref.load %price[%i] : memref<${N}x${T}>
    %x = memref.load %strike[%i] : memref<${N}x${T}>
    %t = memref.load %years[%i] : memref<${N}x${T}>
    %moneyness = arith.divf %s, %x : ${T}
    %log = math.log %moneyness : ${T}
    %trend = arith.mulf %drift, %t : ${T}
    %top = arith.addf %log, %trend : ${T}
    %root_t = math.sqrt %t : ${T}
    %spread = arith.mulf %volatility, %root_t : ${T}
    %d1 = arith.divf %top, %spread : ${T}
    %d2 = arith.subf %d1, %spread : ${T}
    %z1 = arith.mulf %d1, %root_half : ${T}
    %z2 = arith.mulf %d2, %root_half : ${T}
    %erf1 = math.erf %z1 : ${T}
    %erf2 = math.erf %z2 : ${T}
    %more1 = arith.addf %one, %erf1 : ${T}
    %more2 = arith.addf %one, %erf2 : ${T}
    %n1 = arith.mulf %half, %more1 : ${T}
    %n2 = arith.mulf %half, %more2 : ${T}
    %decay = arith.mulf %minus_rate, %t : ${T}
    %discount = math.exp %decay : ${T}
    %due = arith.mulf %x, %discount : ${T}
    %gain = arith.mulf %s, %n1 : ${T}
    %cost = arith.mulf %due, %n2 : ${T}
    %call_value = arith.subf %gain, %cost : ${T}
    memref.store %call_value, %call[%i] : memref<${N}x${T}>
    %gap = arith.subf %due, %s : ${T}
    %put_value = arith.addf %call_value, %gap : ${T}
    memref.store %put_value, %put[%i] : memref<${N}x${T}>
    scf.reduce
  }
  return
}
