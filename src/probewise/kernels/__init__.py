"""Kernels: the arithmetic, as small functions over arrays, independent of estimators, folds and ledgers.

CPU kernels are compiled by numba, which only this package imports, and release the GIL (`jit`). GPU kernels are in
`device`: torch, which also runs on the CPU, and Triton where one kernel replaces several steps.

===============  ================================================  ==============================  =====================
module           contents                                          in `device`                     used by
===============  ================================================  ==============================  =====================
draw             random subsets from counters (Philox)                                             engine.probes
sums             sums per feature over probes, and DAF0 from them                                  engine.tally, loop
order            insertion sort of a few numbers                                                   intervals, votes
inclusion        products with the matrix of probes by features    inclusion                       engine.regression
columns          columns of a wide matrix, gathered and centered   columns                         criteria, discretize
neighbors        k nearest neighbors, each pair of rows once       neighbors, neighbors_quick,     criteria.knn
                                                                   neighbors_triton
votes            k nearest neighbors in any folds, and their votes                                  criteria.knn
products         inner products of columns, block by block                                         votes, ridge
ridge            ridge regression of left-out rows, closed form    linear (batched Cholesky)       criteria.linear
ridge_sums       ridge regression from sums, and predictions                                       criteria.linear
factor           Cholesky factors and their precision                                              ridge, ridge_sums
bayes            Gaussian naive Bayes from class moments                                           criteria.naive_bayes
scores           accuracy, F1, area under the curve, R^2           scores, scores_triton           criteria.scoring
moments          class means and scatters in one pass                                              filters.fsdd
relief           nearest rows of each class, sums of differences                                   filters.relieff
intervals        cut points: optimal, greedy, MDL                                                  discretize
levels           mean, deviation and common values of columns                                      discretize
contingency      joint counts of coded columns                                                     information
vectors          vector instructions and prefetching                                               votes, ridge
jit              decorators that compile kernels                                                   all kernels
===============  ================================================  ==============================  =====================
"""
