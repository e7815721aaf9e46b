func.func @kernel_game_of_life(%tsteps: index, %A: memref<${ROWS}x${COLS}x${T}>,
                               %B: memref<${ROWS}x${COLS}x${T}>) {
  ${extents}
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0 : ${T}
  %two = arith.constant 2 : ${T}
  %three = arith.constant 3 : ${T}
  %last_row = arith.subi %rows, %c1 : index
  %last_col = arith.subi %cols, %c1 : index
  scf.for %t = %c0 to %tsteps step %c1 {
    scf.parallel (%i, %j) = (%c0, %c0) to (%rows, %cols) step (%c1, %c1) {
      %i_less = arith.addi %i, %last_row : index
      %i_more = arith.addi %i, %c1 : index
      %up = arith.remui %i_less, %rows : index
      %down = arith.remui %i_more, %rows : index
      %j_less = arith.addi %j, %last_col : index
      %j_more = arith.addi %j, %c1 : index
      %left = arith.remui %j_less, %cols : index
      %right = arith.remui %j_more, %cols : index
      %n0 = memref.load %A[%up, %left] : memref<${ROWS}x${COLS}x${T}>
      %n1 = memref.load %A[%up, %j] : memref<${ROWS}x${COLS}x${T}>
      %n2 = memref.load %A[%up, %right] : memref<${ROWS}x${COLS}x${T}>
      %n3 = memref.load %A[%i, %left] : memref<${ROWS}x${COLS}x${T}>
      %n4 = memref.load %A[%i, %right] : memref<${ROWS}x${COLS}x${T}>
      %n5 = memref.load %A[%down, %left] : memref<${ROWS}x${COLS}x${T}>
      %n6 = memref.load %A[%down, %j] : memref<${ROWS}x${COLS}x${T}>
      %n7 = memref.load %A[%down, %right] : memref<${ROWS}x${COLS}x${T}>
      %s1 = arith.addi %n0, %n1 : ${T}
      %s2 = arith.addi %s1, %n2 : ${T}
      %s3 = arith.addi %s2, %n3 : ${T}
      %s4 = arith.addi %s3, %n4 : ${T}
      %s5 = arith.addi %s4, %n5 : ${T}
      %s6 = arith.addi %s5, %n6 : ${T}
      %s7 = arith.addi %s6, %n7 : ${T}
      %cell = memref.load %A[%i, %j] : memref<${ROWS}x${COLS}x${T}>
      %born = arith.cmpi eq, %s7, %three : ${T}
      %pair = arith.cmpi eq, %s7, %two : ${T}
      %lives = arith.cmpi ne, %cell, %zero : ${T}
      %stays = arith.andi %pair, %lives : i1
      %alive = arith.ori %born, %stays : i1
      %new = arith.extui %alive : i1 to ${T}
      memref.store %new, %B[%i, %j] : memref<${ROWS}x${COLS}x${T}>
      scf.reduce
    }
    scf.parallel (%i, %j) = (%c0, %c0) to (%rows, %cols) step (%c1, %c1) {
      %i_less = arith.addi %i, %last_row : index
      %i_more = arith.addi %i, %c1 : index
      %up = arith.remui %i_less, %rows : index
      %down = arith.remui %i_more, %rows : index
      %j_less = arith.addi %j, %last_col : index
      %j_more = arith.addi %j, %c1 : index
      %left = arith.remui %j_less, %cols : index
      %right = arith.remui %j_more, %cols : index
      %n0 = memref.load %B[%up, %left] : memref<${ROWS}x${COLS}x${T}>
      %n1 = memref.load %B[%up, %j] : memref<${ROWS}x${COLS}x${T}>
      %n2 = memref.load %B[%up, %right] : memref<${ROWS}x${COLS}x${T}>
      %n3 = memref.load %B[%i, %left] : memref<${ROWS}x${COLS}x${T}>
      %n4 = memref.load %B[%i, %right] : memref<${ROWS}x${COLS}x${T}>
      %n5 = memref.load %B[%down, %left] : memref<${ROWS}x${COLS}x${T}>
      %n6 = memref.load %B[%down, %j] : memref<${ROWS}x${COLS}x${T}>
      %n7 = memref.load %B[%down, %right] : memref<${ROWS}x${COLS}x${T}>
      %s1 = arith.addi %n0, %n1 : ${T}
      %s2 = arith.addi %s1, %n2 : ${T}
      %s3 = arith.addi %s2, %n3 : ${T}
      %s4 = arith.addi %s3, %n4 : ${T}
      %s5 = arith.addi %s4, %n5 : ${T}
      %s6 = arith.addi %s5, %n6 : ${T}
      %s7 = arith.addi %s6, %n7 : ${T}
      %cell = memref.load %B[%i, %j] : memref<${ROWS}x${COLS}x${T}>
      %born = arith.cmpi eq, %s7, %three : ${T}
      %pair = arith.cmpi eq, %s7, %two : ${T}
      %lives = arith.cmpi ne, %cell, %zero : ${T}
      %stays = arith.andi %pair, %lives : i1
      %alive = arith.ori %born, %stays : i1
      %new = arith.extui %alive : i1 to ${T}
      memref.store %new, %A[%i, %j] : memref<${ROWS}x${COLS}x${T}>
      scf.reduce
    }
  }
  return
}
