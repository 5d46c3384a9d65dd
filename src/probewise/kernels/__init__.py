"""Kernels: the arithmetic, as small functions over arrays that know nothing of estimators, folds or ledgers.

Those for the CPU are compiled by numba, which only this package imports, and release the GIL (`jit`). Those for GPUs
are in `device`: torch, which also runs on the CPU, with Triton where one kernel for several steps pays.

===============  ================================================  ==============================  ===================
module           what it computes                                  in `device`                     used by
===============  ================================================  ==============================  ===================
draw             random subsets from counters (Philox)                                             engine.probes
sums             per-feature sums over probes, DAF0 from them                                      engine.tally, loop
order            insertion sort of a few numbers                                                   intervals, votes
inclusion        products with the matrix of probes by features    inclusion                       engine.regression
columns          columns of a wide matrix, gathered and centred    columns                         criteria, discretize
neighbors        k nearest neighbours across folds of many rows    neighbors, neighbors_quick,     criteria.knn
                                                                   neighbors_triton
votes            k nearest rows in any folds, what they say                                        criteria.knn
products         inner products of columns, some by some                                           votes, ridge_ways
integers         distances of 16-bit integers (AVX512-VNNI)                                        neighbors
linear           ridge regression from sums, and predictions       linear (Cholesky in batches)    criteria.linear
ridge_decisions  ridge regression of rows left out, closed form                                    criteria.linear
ridge_ways       four ways to these, by columns and by rows                                        ridge_decisions
ridge_left_out   what it predicts                                                                  criteria.linear
factor           Cholesky factors, and the digits they leave                                       the above
bayes            Gaussian naive Bayes from class moments                                           criteria.naive_bayes
scores           accuracy, F1, area under the curve, R^2           scores, scores_triton           criteria.scoring
moments          class means and scatters in one pass                                              filters.fsdd
relief           nearest rows of each class, sums of differences                                   filters.relieff
intervals        cut points: optimal, greedy, MDL                                                  discretize
levels           mean, deviation, few or common values of columns                                  discretize
contingency      joint counts of coded columns                                                     information
vectors          vector instructions, and what is fetched ahead                                    the above
jit              how kernels are compiled
===============  ================================================  ==============================  ===================
"""
