// RUN: -p block-contractions
// ON: x86_64 avx fma

// Panels of B are packed for threads to share; for blocks of rows, and panels, tiles of C in
// registers.

// CHECK-LABEL: func.func private @product.pack_right(
// CHECK-COUNT-3: vector.maskedload %{{.*}} into vector<4xf64>
// CHECK-LABEL: func.func private @product.pack_left
// CHECK-LABEL: func.func private @product.add_terms
// CHECK: %{{.*}}:12 = scf.for
// CHECK-COUNT-12: math.fma %{{.*}} : vector<4xf64>
// CHECK-NOT: math.fma
// CHECK-LABEL: func.func @product(
// CHECK-SAME: %[[A:.*]]: memref<120x110xf64>, %[[B:.*]]: memref<110x130xf64>, %[[C:.*]]: memref<120x130xf64>)
// CHECK: %[[ALLOC:.*]] = memref.alloc(%{{.*}}, %{{.*}}) {alignment = 64 : i64} : memref<?x?x12xf64>
// CHECK-NEXT: scf.for %[[ARG3:.*]] = %{{.*}} to %{{.*}} step %{{.*}} {
// CHECK: scf.for %[[ARG4:.*]] = %{{.*}} to %{{.*}} step %{{.*}} {
// CHECK: func.call @product.pack_right(%[[ARG3]], %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %[[ARG4]]) {avial.work = 96 : i64} : (index, index, index, index, index, memref<?x?xf64>, memref<?x?x?xf64>, index) -> ()
// CHECK-NEXT: } {avial.parallel}
// CHECK: scf.for %[[ARG4_:.*]] = %{{.*}} to %{{.*}} step %{{.*}} {
// CHECK: %[[ALLOC_17:.*]] = memref.alloc() {alignment = 64 : i64} : memref<24x345x4xf64>
// CHECK: scf.for %[[ARG5:.*]] = %{{.*}} to %{{.*}} step %{{.*}} {
// CHECK: func.call @product.pack_left1(%[[ARG3]], %{{.*}}, %{{.*}}, %{{.*}}, %[[ARG5]], %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}) {avial.work = 32 : i64} : (index, index, index, index, index, index, index, index, memref<?x?xf64>, memref<?x?x?xf64>, index) -> ()
// CHECK: scf.for %[[ARG5_:.*]] = %{{.*}} to %{{.*}} step %{{.*}} {
// CHECK: scf.for %[[ARG6:.*]] = %{{.*}} to %{{.*}} step %{{.*}} {
// CHECK: func.call @product.add_terms2(%[[ARG3]], %{{.*}}, %{{.*}}, %[[ARG6]], %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %[[ARG5_]], %{{.*}}) {avial.work = 48 : i64} : (index, index, index, index, index, index, memref<?x?xf64>, index, memref<?x?x?xf64>, index, memref<?x?x?xf64>) -> ()
// CHECK: memref.dealloc %[[ALLOC_17]] : memref<24x345x4xf64>
// CHECK-NEXT: } {avial.parallel}
// CHECK: memref.dealloc %[[ALLOC]] : memref<?x?x12xf64>
// CHECK-NEXT: return
func.func @product(%A: memref<120x110xf64>, %B: memref<110x130xf64>, %C: memref<120x130xf64>) attributes {avial.no_alias} {
  affine.for %i = 0 to 120 {
    affine.for %j = 0 to 130 {
      affine.for %k = 0 to 110 {
        %a = affine.load %A[%i, %k] : memref<120x110xf64>
        %b = affine.load %B[%k, %j] : memref<110x130xf64>
        %c = affine.load %C[%i, %j] : memref<120x130xf64>
        %s = math.fma %a, %b, %c : f64
        affine.store %s, %C[%i, %j] : memref<120x130xf64>
      }
    }
  }
  return
}

// -----

// Packing would cost more than it saves.

// CHECK-LABEL: func.func @leaves_few_rows(
// CHECK-SAME: %[[A:.*]]: memref<3x110xf64>, %[[B:.*]]: memref<110x3xf64>, %[[C:.*]]: memref<3x3xf64>)
// CHECK-NEXT: affine.for %[[I:.*]] = 0 to 3 {
// CHECK-NEXT: affine.for %[[J:.*]] = 0 to 3 {
// CHECK-NEXT: affine.for %[[K:.*]] = 0 to 110 {
// CHECK-NEXT: %[[A_:.*]] = affine.load %[[A]][%[[I]], %[[K]]] : memref<3x110xf64>
// CHECK-NEXT: %[[B_:.*]] = affine.load %[[B]][%[[K]], %[[J]]] : memref<110x3xf64>
// CHECK-NEXT: %[[C_:.*]] = affine.load %[[C]][%[[I]], %[[J]]] : memref<3x3xf64>
// CHECK-NEXT: %[[S:.*]] = math.fma %[[A_]], %[[B_]], %[[C_]] : f64
// CHECK-NEXT: affine.store %[[S]], %[[C]][%[[I]], %[[J]]] : memref<3x3xf64>
// CHECK-NEXT: }
// CHECK-NEXT: }
// CHECK-NEXT: }
// CHECK-NEXT: return
func.func @leaves_few_rows(%A: memref<3x110xf64>, %B: memref<110x3xf64>, %C: memref<3x3xf64>) attributes {avial.no_alias} {
  affine.for %i = 0 to 3 {
    affine.for %j = 0 to 3 {
      affine.for %k = 0 to 110 {
        %a = affine.load %A[%i, %k] : memref<3x110xf64>
        %b = affine.load %B[%k, %j] : memref<110x3xf64>
        %c = affine.load %C[%i, %j] : memref<3x3xf64>
        %s = math.fma %a, %b, %c : f64
        affine.store %s, %C[%i, %j] : memref<3x3xf64>
      }
    }
  }
  return
}

// -----

// Two of three loops: nothing is used again.

// CHECK-LABEL: func.func @leaves_sums_of_rows(
// CHECK-SAME: %[[A:.*]]: memref<120x110xf64>, %[[B:.*]]: memref<110xf64>, %[[C:.*]]: memref<120xf64>) attributes {avial.no_alias} {
// CHECK-NEXT: affine.for %[[I:.*]] = 0 to 120 {
// CHECK-NEXT: affine.for %[[K:.*]] = 0 to 110 {
// CHECK-NEXT: %[[A_:.*]] = affine.load %[[A]][%[[I]], %[[K]]] : memref<120x110xf64>
// CHECK-NEXT: %[[B_:.*]] = affine.load %[[B]][%[[K]]] : memref<110xf64>
// CHECK-NEXT: %[[C_:.*]] = affine.load %[[C]][%[[I]]] : memref<120xf64>
// CHECK-NEXT: %[[S:.*]] = math.fma %[[A_]], %[[B_]], %[[C_]] : f64
// CHECK-NEXT: affine.store %[[S]], %[[C]][%[[I]]] : memref<120xf64>
// CHECK-NEXT: }
// CHECK-NEXT: }
// CHECK-NEXT: return
func.func @leaves_sums_of_rows(%A: memref<120x110xf64>, %B: memref<110xf64>, %C: memref<120xf64>) attributes {avial.no_alias} {
  affine.for %i = 0 to 120 {
    affine.for %k = 0 to 110 {
      %a = affine.load %A[%i, %k] : memref<120x110xf64>
      %b = affine.load %B[%k] : memref<110xf64>
      %c = affine.load %C[%i] : memref<120xf64>
      %s = math.fma %a, %b, %c : f64
      affine.store %s, %C[%i] : memref<120xf64>
    }
  }
  return
}

// -----

// Every row needs the one before: no term is by itself.

// CHECK-LABEL: func.func @leaves_chains(
// CHECK-SAME: %[[A:.*]]: memref<120x110xf64>, %[[B:.*]]: memref<110x130xf64>, %[[C:.*]]: memref<120x130xf64>)
// CHECK-NEXT: affine.for %[[I:.*]] = 1 to 120 {
// CHECK-NEXT: affine.for %[[J:.*]] = 0 to 130 {
// CHECK-NEXT: affine.for %[[K:.*]] = 0 to 110 {
// CHECK-NEXT: %[[A_:.*]] = affine.load %[[A]][%[[I]], %[[K]]] : memref<120x110xf64>
// CHECK-NEXT: %[[B_:.*]] = affine.load %[[B]][%[[K]], %[[J]]] : memref<110x130xf64>
// CHECK-NEXT: %[[C_:.*]] = affine.load %[[C]][%[[I]] - 1, %[[J]]] : memref<120x130xf64>
// CHECK-NEXT: %[[S:.*]] = math.fma %[[A_]], %[[B_]], %[[C_]] : f64
// CHECK-NEXT: affine.store %[[S]], %[[C]][%[[I]], %[[J]]] : memref<120x130xf64>
// CHECK-NEXT: }
// CHECK-NEXT: }
// CHECK-NEXT: }
// CHECK-NEXT: return
func.func @leaves_chains(%A: memref<120x110xf64>, %B: memref<110x130xf64>, %C: memref<120x130xf64>) attributes {avial.no_alias} {
  affine.for %i = 1 to 120 {
    affine.for %j = 0 to 130 {
      affine.for %k = 0 to 110 {
        %a = affine.load %A[%i, %k] : memref<120x110xf64>
        %b = affine.load %B[%k, %j] : memref<110x130xf64>
        %c = affine.load %C[%i - 1, %j] : memref<120x130xf64>
        %s = math.fma %a, %b, %c : f64
        affine.store %s, %C[%i, %j] : memref<120x130xf64>
      }
    }
  }
  return
}
