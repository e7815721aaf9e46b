// RUN: -p index-to-arith

// Every operation of the dialect is one of arith.

// CHECK-LABEL: func.func @all(
// CHECK-SAME: %[[N:.*]]: index, %[[A:.*]]: memref<20xindex>, %[[B:.*]]: memref<20xi64>, %[[C:.*]]: memref<4xi64>)
// CHECK-NOT: index.{{(add|sub|mul|div|ceil|floor|rem|max|min|sh|and|or|xor|cast|cmp|const|bool|size)}}
// CHECK: arith.constant -3 : index
// CHECK: arith.constant true
// CHECK: arith.constant 64 : index
// CHECK: arith.ceildivsi
// CHECK: arith.cmpi ule
// CHECK: arith.index_cast %{{.*}} : index to i8
// CHECK: arith.index_castui %{{.*}} : i8 to index
func.func @all(%n: index, %A: memref<20xindex>, %B: memref<20xi64>, %C: memref<4xi64>) {
  %m = index.constant -3
  %true = index.bool.constant true
  %bits = index.sizeof
  %v0 = index.add %n, %m
  %v1 = index.sub %n, %m
  %v2 = index.mul %n, %m
  %v3 = index.divs %n, %m
  %v4 = index.divu %m, %n
  %v5 = index.ceildivs %n, %m
  %v6 = index.ceildivu %m, %n
  %v7 = index.floordivs %n, %m
  %v8 = index.rems %m, %n
  %v9 = index.remu %m, %n
  %v10 = index.maxs %n, %m
  %v11 = index.maxu %n, %m
  %v12 = index.mins %n, %m
  %v13 = index.minu %n, %m
  %v14 = index.shl %m, %n
  %v15 = index.shrs %m, %n
  %v16 = index.shru %m, %n
  %v17 = index.and %m, %n
  %v18 = index.or %m, %n
  %v19 = index.xor %m, %n
  affine.store %v0, %A[0] : memref<20xindex>
  affine.store %v1, %A[1] : memref<20xindex>
  affine.store %v2, %A[2] : memref<20xindex>
  affine.store %v3, %A[3] : memref<20xindex>
  affine.store %v4, %A[4] : memref<20xindex>
  affine.store %v5, %A[5] : memref<20xindex>
  affine.store %v6, %A[6] : memref<20xindex>
  affine.store %v7, %A[7] : memref<20xindex>
  affine.store %v8, %A[8] : memref<20xindex>
  affine.store %v9, %A[9] : memref<20xindex>
  affine.store %v10, %A[10] : memref<20xindex>
  affine.store %v11, %A[11] : memref<20xindex>
  affine.store %v12, %A[12] : memref<20xindex>
  affine.store %v13, %A[13] : memref<20xindex>
  affine.store %v14, %A[14] : memref<20xindex>
  affine.store %v15, %A[15] : memref<20xindex>
  affine.store %v16, %A[16] : memref<20xindex>
  affine.store %v17, %A[17] : memref<20xindex>
  affine.store %v18, %A[18] : memref<20xindex>
  affine.store %v19, %A[19] : memref<20xindex>
  %r0 = index.cmp ule(%n, %m)
  %r1 = index.cmp slt(%n, %m)
  %r2 = index.cmp eq(%n, %m)
  %e0 = arith.extui %r0 : i1 to i64
  affine.store %e0, %B[0] : memref<20xi64>
  %e1 = arith.extui %r1 : i1 to i64
  affine.store %e1, %B[1] : memref<20xi64>
  %e2 = arith.extui %r2 : i1 to i64
  affine.store %e2, %B[2] : memref<20xi64>
  %e3 = arith.extui %true : i1 to i64
  affine.store %e3, %B[3] : memref<20xi64>
  %c0 = index.casts %m : index to i8
  %c1 = index.casts %c0 : i8 to index
  %c2 = index.castu %c0 : i8 to index
  %i0 = index.casts %c1 : index to i64
  %i1 = index.castu %c2 : index to i64
  %i2 = index.casts %bits : index to i64
  affine.store %i0, %C[0] : memref<4xi64>
  affine.store %i1, %C[1] : memref<4xi64>
  affine.store %i2, %C[2] : memref<4xi64>
  return
}
