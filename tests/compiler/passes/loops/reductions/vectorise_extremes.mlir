// RUN: -p vectorise-extremes
// ON: x86_64 avx fma

// Four vectors look for the greatest; the loop runs again where a zero or no number was found,
// whose
// sign or place the order tells.

// CHECK-DAG: #[[$MAP:.*]] = affine_map<() -> (0)>
// CHECK-DAG: #[[$MAP1:.*]] = affine_map<() -> (100)>
// CHECK-DAG: #[[$MAP2:.*]] = affine_map<(d0) -> (d0)>
// CHECK-LABEL: func.func @greatest(
// CHECK-SAME: %[[A:.*]]: memref<100xf64>, %[[Y:.*]]: memref<1xf64>, %[[X:.*]]: f64)
// CHECK-NEXT: %[[M:.*]] = affine.max #[[$MAP]]()
// CHECK-NEXT: %[[M_0:.*]] = affine.min #[[$MAP1]]()
// CHECK: %[[M_15:.*]] = vector.broadcast %[[X]] : f64 to vector<4xf64>
// CHECK: %[[M_17:.*]]:4 = scf.for %[[I:.*]] = %[[M]] to %{{.*}} step %{{.*}} iter_args(%[[M_42:.*]] = %[[M_15]], %[[M_43:.*]] = %[[M_15]], %[[M_44:.*]] = %[[M_15]], %[[M_45:.*]] = %[[M_15]]) -> (vector<4xf64>, vector<4xf64>, vector<4xf64>, vector<4xf64>) {
// CHECK-NEXT: %[[A_:.*]] = affine.apply #[[$MAP2]](%[[I]])
// CHECK-NEXT: %[[A_46:.*]] = vector.load %[[A]][%[[A_]]] : memref<100xf64>, vector<4xf64>
// CHECK-NEXT: %[[C:.*]] = arith.cmpf ogt, %[[A_46]], %[[M_42]] : vector<4xf64>
// CHECK-NEXT: %[[U:.*]] = arith.select %[[C]], %[[A_46]], %[[M_42]] : vector<4xi1>, vector<4xf64>
// CHECK: %[[A_49:.*]] = affine.apply #[[$MAP2]](%{{.*}})
// CHECK-NEXT: %[[A_50:.*]] = vector.load %[[A]][%[[A_49]]] : memref<100xf64>, vector<4xf64>
// CHECK-NEXT: %[[C_51:.*]] = arith.cmpf ogt, %[[A_50]], %[[M_43]] : vector<4xf64>
// CHECK-NEXT: %[[U_52:.*]] = arith.select %[[C_51]], %[[A_50]], %[[M_43]] : vector<4xi1>, vector<4xf64>
// CHECK: %[[A_55:.*]] = affine.apply #[[$MAP2]](%{{.*}})
// CHECK-NEXT: %[[A_56:.*]] = vector.load %[[A]][%[[A_55]]] : memref<100xf64>, vector<4xf64>
// CHECK-NEXT: %[[C_57:.*]] = arith.cmpf ogt, %[[A_56]], %[[M_44]] : vector<4xf64>
// CHECK-NEXT: %[[U_58:.*]] = arith.select %[[C_57]], %[[A_56]], %[[M_44]] : vector<4xi1>, vector<4xf64>
// CHECK: %[[A_61:.*]] = affine.apply #[[$MAP2]](%{{.*}})
// CHECK-NEXT: %[[A_62:.*]] = vector.load %[[A]][%[[A_61]]] : memref<100xf64>, vector<4xf64>
// CHECK-NEXT: %[[C_63:.*]] = arith.cmpf ogt, %[[A_62]], %[[M_45]] : vector<4xf64>
// CHECK-NEXT: %[[U_64:.*]] = arith.select %[[C_63]], %[[A_62]], %[[M_45]] : vector<4xi1>, vector<4xf64>
// CHECK-NEXT: scf.yield %[[U]], %[[U_52]], %[[U_58]], %[[U_64]] : vector<4xf64>, vector<4xf64>, vector<4xf64>, vector<4xf64>
// CHECK-NEXT: } {avial.rolled}
// CHECK-NEXT: %[[M_18:.*]] = arith.cmpf ogt, %[[M_17]]#1, %[[M_17]]#0 : vector<4xf64>
// CHECK-NEXT: %[[M_19:.*]] = arith.select %[[M_18]], %[[M_17]]#1, %[[M_17]]#0 : vector<4xi1>, vector<4xf64>
// CHECK-NEXT: %[[M_20:.*]] = arith.cmpf ogt, %[[M_17]]#2, %[[M_19]] : vector<4xf64>
// CHECK-NEXT: %[[M_21:.*]] = arith.select %[[M_20]], %[[M_17]]#2, %[[M_19]] : vector<4xi1>, vector<4xf64>
// CHECK-NEXT: %[[M_22:.*]] = arith.cmpf ogt, %[[M_17]]#3, %[[M_21]] : vector<4xf64>
// CHECK-NEXT: %[[M_23:.*]] = arith.select %[[M_22]], %[[M_17]]#3, %[[M_21]] : vector<4xi1>, vector<4xf64>
// CHECK: %[[M_25:.*]] = scf.for %[[I_:.*]] = %{{.*}} to %{{.*}} step %{{.*}} iter_args(%[[M_42_:.*]] = %[[M_23]]) -> (vector<4xf64>) {
// CHECK-NEXT: %[[A__:.*]] = affine.apply #[[$MAP2]](%[[I_]])
// CHECK-NEXT: %[[A_43:.*]] = vector.load %[[A]][%[[A__]]] : memref<100xf64>, vector<4xf64>
// CHECK-NEXT: %[[C_:.*]] = arith.cmpf ogt, %[[A_43]], %[[M_42_]] : vector<4xf64>
// CHECK-NEXT: %[[U_:.*]] = arith.select %[[C_]], %[[A_43]], %[[M_42_]] : vector<4xi1>, vector<4xf64>
// CHECK-NEXT: scf.yield %[[U_]] : vector<4xf64>
// CHECK-NEXT: } {avial.rolled}
// CHECK: %[[M_28:.*]] = arith.cmpf ogt, %{{.*}}, %{{.*}} : vector<2xf64>
// CHECK-NEXT: %[[M_29:.*]] = arith.select %[[M_28]], %{{.*}}, %{{.*}} : vector<2xi1>, vector<2xf64>
// CHECK: %[[M_32:.*]] = arith.cmpf ogt, %{{.*}}, %{{.*}} : vector<1xf64>
// CHECK-NEXT: %[[M_33:.*]] = arith.select %[[M_32]], %{{.*}}, %{{.*}} : vector<1xi1>, vector<1xf64>
// CHECK-NEXT: %[[M_34:.*]] = vector.extract %[[M_33]][0] : f64 from vector<1xf64>
// CHECK-NEXT: %[[M_35:.*]] = vector.broadcast %[[M_34]] : f64 to vector<1xf64>
// CHECK: %[[M_37:.*]] = scf.for %[[I__:.*]] = %{{.*}} to %[[M_0]] step %{{.*}} iter_args(%[[M_42__:.*]] = %[[M_35]]) -> (vector<1xf64>) {
// CHECK-NEXT: %[[A___:.*]] = affine.apply #[[$MAP2]](%[[I__]])
// CHECK-NEXT: %[[A_43_:.*]] = vector.load %[[A]][%[[A___]]] : memref<100xf64>, vector<1xf64>
// CHECK-NEXT: %[[C__:.*]] = arith.cmpf ogt, %[[A_43_]], %[[M_42__]] : vector<1xf64>
// CHECK-NEXT: %[[U__:.*]] = arith.select %[[C__]], %[[A_43_]], %[[M_42__]] : vector<1xi1>, vector<1xf64>
// CHECK-NEXT: scf.yield %[[U__]] : vector<1xf64>
// CHECK-NEXT: } {avial.rolled}
// CHECK-NEXT: %[[M_38:.*]] = vector.extract %[[M_37]][0] : f64 from vector<1xf64>
// CHECK: %[[M_40:.*]] = arith.cmpf ueq, %[[M_38]], %{{.*}} : f64
// CHECK-NEXT: %[[M_41:.*]] = scf.if %[[M_40]] -> (f64) {
// CHECK-NEXT: %[[M_42___:.*]] = affine.for %[[I___:.*]] = 0 to 100 iter_args(%[[T:.*]] = %[[X]]) -> (f64) {
// CHECK-NEXT: %[[A____:.*]] = affine.load %[[A]][%[[I___]]] : memref<100xf64>
// CHECK-NEXT: %[[C___:.*]] = arith.cmpf ogt, %[[A____]], %[[T]] : f64
// CHECK-NEXT: %[[U___:.*]] = arith.select %[[C___]], %[[A____]], %[[T]] : f64
// CHECK-NEXT: affine.yield %[[U___]] : f64
// CHECK: scf.yield %[[M_42___]] : f64
// CHECK-NEXT: } else {
// CHECK-NEXT: scf.yield %[[M_38]] : f64
// CHECK: affine.store %[[M_41]], %[[Y]][0] : memref<1xf64>
// CHECK-NEXT: return
func.func @greatest(%A: memref<100xf64>, %y: memref<1xf64>, %x: f64) attributes {avial.no_alias} {
  %m = affine.for %i = 0 to 100 iter_args(%t = %x) -> (f64) {
    %a = affine.load %A[%i] : memref<100xf64>
    %c = arith.cmpf ogt, %a, %t : f64
    %u = arith.select %c, %a, %t : f64
    affine.yield %u : f64
  }
  affine.store %m, %y[0] : memref<1xf64>
  return
}

// -----

// Fewer than four vectors.

// CHECK-LABEL: func.func @leaves_few(
// CHECK-SAME: %[[A:.*]]: memref<15xf64>, %[[Y:.*]]: memref<1xf64>, %[[X:.*]]: f64) attributes {avial.no_alias} {
// CHECK-NEXT: %[[M:.*]] = affine.for %[[I:.*]] = 0 to 15 iter_args(%[[T:.*]] = %[[X]]) -> (f64) {
// CHECK-NEXT: %[[A_:.*]] = affine.load %[[A]][%[[I]]] : memref<15xf64>
// CHECK-NEXT: %[[C:.*]] = arith.cmpf ogt, %[[A_]], %[[T]] : f64
// CHECK-NEXT: %[[U:.*]] = arith.select %[[C]], %[[A_]], %[[T]] : f64
// CHECK-NEXT: affine.yield %[[U]] : f64
// CHECK-NEXT: }
// CHECK-NEXT: affine.store %[[M]], %[[Y]][0] : memref<1xf64>
// CHECK-NEXT: return
func.func @leaves_few(%A: memref<15xf64>, %y: memref<1xf64>, %x: f64) attributes {avial.no_alias} {
  %m = affine.for %i = 0 to 15 iter_args(%t = %x) -> (f64) {
    %a = affine.load %A[%i] : memref<15xf64>
    %c = arith.cmpf ogt, %a, %t : f64
    %u = arith.select %c, %a, %t : f64
    affine.yield %u : f64
  }
  affine.store %m, %y[0] : memref<1xf64>
  return
}

// -----

// Sums are no choice.

// CHECK-LABEL: func.func @leaves_sums(
// CHECK-SAME: %[[A:.*]]: memref<100xf64>, %[[Y:.*]]: memref<1xf64>, %[[X:.*]]: f64) attributes {avial.no_alias} {
// CHECK-NEXT: %[[M:.*]] = affine.for %[[I:.*]] = 0 to 100 iter_args(%[[T:.*]] = %[[X]]) -> (f64) {
// CHECK-NEXT: %[[A_:.*]] = affine.load %[[A]][%[[I]]] : memref<100xf64>
// CHECK-NEXT: %[[U:.*]] = arith.addf %[[T]], %[[A_]] : f64
// CHECK-NEXT: affine.yield %[[U]] : f64
// CHECK-NEXT: }
// CHECK-NEXT: affine.store %[[M]], %[[Y]][0] : memref<1xf64>
// CHECK-NEXT: return
func.func @leaves_sums(%A: memref<100xf64>, %y: memref<1xf64>, %x: f64) attributes {avial.no_alias} {
  %m = affine.for %i = 0 to 100 iter_args(%t = %x) -> (f64) {
    %a = affine.load %A[%i] : memref<100xf64>
    %u = arith.addf %t, %a : f64
    affine.yield %u : f64
  }
  affine.store %m, %y[0] : memref<1xf64>
  return
}

// -----

// It would store twice to what it loads from.

// CHECK-LABEL: func.func @leaves_what_changes_its_array(
// CHECK-SAME: %[[A:.*]]: memref<100xf64>, %[[Y:.*]]: memref<1xf64>, %[[X:.*]]: f64) attributes {avial.no_alias} {
// CHECK-NEXT: %[[M:.*]] = affine.for %[[I:.*]] = 0 to 100 iter_args(%[[T:.*]] = %[[X]]) -> (f64) {
// CHECK-NEXT: %[[A_:.*]] = affine.load %[[A]][%[[I]]] : memref<100xf64>
// CHECK-NEXT: %[[B:.*]] = arith.addf %[[A_]], %[[A_]] : f64
// CHECK-NEXT: affine.store %[[B]], %[[A]][%[[I]]] : memref<100xf64>
// CHECK-NEXT: %[[C:.*]] = arith.cmpf ogt, %[[A_]], %[[T]] : f64
// CHECK-NEXT: %[[U:.*]] = arith.select %[[C]], %[[A_]], %[[T]] : f64
// CHECK-NEXT: affine.yield %[[U]] : f64
// CHECK-NEXT: }
// CHECK-NEXT: affine.store %[[M]], %[[Y]][0] : memref<1xf64>
// CHECK-NEXT: return
func.func @leaves_what_changes_its_array(%A: memref<100xf64>, %y: memref<1xf64>, %x: f64) attributes {avial.no_alias} {
  %m = affine.for %i = 0 to 100 iter_args(%t = %x) -> (f64) {
    %a = affine.load %A[%i] : memref<100xf64>
    %b = arith.addf %a, %a : f64
    affine.store %b, %A[%i] : memref<100xf64>
    %c = arith.cmpf ogt, %a, %t : f64
    %u = arith.select %c, %a, %t : f64
    affine.yield %u : f64
  }
  affine.store %m, %y[0] : memref<1xf64>
  return
}
