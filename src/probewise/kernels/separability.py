"""How far classes are apart, from means and covariances, and how much of the scatter a few clusters explain."""

import math

import numpy as np

from .jit import njit_cached


@njit_cached
def standardize(values, starts, shift, scale, columns):
    """values[i, k] = (values[i, k] - shift[g, f]) * scale[f], f the k-th column, g the group of rows that i is in."""
    for g in range(len(starts) - 1):
        for i in range(starts[g], starts[g + 1]):
            for k in range(len(columns)):
                values[i, k] = (values[i, k] - shift[g, columns[k]]) * scale[columns[k]]


@njit_cached
def covariances(values, starts, out):
    """out[g] = mean of z z' over the rows of group g, which are centred already."""
    for g in range(len(starts) - 1):
        rows = values[starts[g] : starts[g + 1]]
        np.dot(rows.T, rows, out[g])
        out[g] /= len(rows)


@njit_cached
def take_covariances(table, columns, out):
    """out[g, i, k] = table[g, columns[i], columns[k]]."""
    for g in range(len(table)):
        for i in range(len(columns)):
            for k in range(len(columns)):
                out[g, i, k] = table[g, columns[i], columns[k]]


@njit_cached
def regularize(covariance, shrinkage, ridge):
    """Shrink each covariance towards its diagonal and add the ridge to that."""
    for g in range(len(covariance)):
        for i in range(covariance.shape[1]):
            variance = covariance[g, i, i]
            for k in range(covariance.shape[1]):
                covariance[g, i, k] *= 1.0 - shrinkage
            covariance[g, i, i] = variance + ridge


@njit_cached
def factorize(matrix, column):
    """The lower Cholesky factor, in place of the lower triangle; returns the logarithm of the determinant."""
    size = len(matrix)
    log_determinant = 0.0
    for j in range(size):
        pivot = math.sqrt(matrix[j, j])
        log_determinant += 2.0 * math.log(pivot)
        matrix[j, j] = pivot
        for i in range(j + 1, size):
            matrix[i, j] /= pivot
            column[i] = matrix[i, j]
        for i in range(j + 1, size):
            subtract(matrix[i, j + 1 : i + 1], column[j + 1 : i + 1], column[i])
    return log_determinant


@njit_cached
def subtract(line, other, factor):
    for k in range(len(line)):
        line[k] -= factor * other[k]


@njit_cached
def squared_length(factor, vector, work):
    """v' (L L')^-1 v of the lower factor L."""
    total = 0.0
    for i in range(len(vector)):
        value = vector[i]
        for k in range(i):
            value -= factor[i, k] * work[k]
        work[i] = value / factor[i, i]
        total += work[i] * work[i]
    return total


@njit_cached
def trace_of_ratio(factor, other, work):
    """tr((L L')^-1 R R') of two lower factors L and R: the squared entries of L^-1 R, which is lower too."""
    total = 0.0
    for i in range(len(factor)):
        line = work[i]
        line[: i + 1] = other[i, : i + 1]
        for k in range(i):
            subtract(line[: k + 1], work[k, : k + 1], factor[i, k])
        for k in range(i + 1):
            line[k] /= factor[i, i]
            total += line[k] * line[k]
    return total


@njit_cached
def mahalanobis(covariance, mean, prior, work, vector):
    """Sum over pairs of classes p_i p_j (m_i - m_j)' W^-1 (m_i - m_j) = sum over classes p_c m_c' W^-1 m_c.

    covariance is (1, d, d), the pooled W; mean (classes, d) is about the mean of all.
    """
    factorize(covariance[0], vector)
    total = 0.0
    for c in range(len(prior)):
        total += prior[c] * squared_length(covariance[0], mean[c], vector)
    return total


@njit_cached
def bhattacharyya(covariance, mean, prior, work, vector):
    """Sum over pairs of classes p_i p_j (1/8 m' A^-1 m + 1/2 ln(|A| / sqrt(|S_i| |S_j|))), A = (S_i + S_j) / 2."""
    n_classes, size = mean.shape
    half_way, difference = work, np.empty(size)
    log_determinant = np.empty(n_classes)
    for c in range(n_classes):
        half_way[:] = covariance[c]
        log_determinant[c] = factorize(half_way, vector)
    total = 0.0
    for i in range(n_classes):
        for j in range(i + 1, n_classes):
            for k in range(size):
                difference[k] = mean[i, k] - mean[j, k]
                for m in range(k + 1):
                    half_way[k, m] = 0.5 * (covariance[i, k, m] + covariance[j, k, m])
            ratio = factorize(half_way, vector) - 0.5 * (log_determinant[i] + log_determinant[j])
            distance = squared_length(half_way, difference, vector)
            total += prior[i] * prior[j] * (0.125 * distance + 0.5 * ratio)
    return total


@njit_cached
def divergence(covariance, mean, prior, work, vector):
    """Sum over pairs of classes p_i p_j (KL(i, j) + KL(j, i)).

    By classes instead of pairs it is 1/2 (sum over c of p_c (tr(S_c^-1 T) + m_c' S_c^-1 m_c) - d), where
    T = sum over c of p_c (S_c + m_c m_c') and means are about the mean of all.
    """
    n_classes, size = mean.shape
    total_scatter = np.zeros((size, size))
    for c in range(n_classes):
        for i in range(size):
            for k in range(i + 1):
                total_scatter[i, k] += prior[c] * (covariance[c, i, k] + mean[c, i] * mean[c, k])
    factorize(total_scatter, vector)
    total = -float(size)
    for c in range(n_classes):
        factorize(covariance[c], vector)
        total += prior[c] * trace_of_ratio(covariance[c], total_scatter, work)
        total += prior[c] * squared_length(covariance[c], mean[c], vector)
    return 0.5 * total


@njit_cached
def cluster_share(values, n_clusters, n_rounds):
    """The share of the scatter of centred rows that lies between the clusters of a k-means partition."""
    n_rows, width = values.shape
    total = 0.0
    for i in range(n_rows):
        for k in range(width):
            total += values[i, k] * values[i, k]
    if total == 0.0:
        return 0.0
    labels, centers = np.zeros(n_rows, np.int64), np.zeros((n_clusters, width))
    members, closeness = np.empty((n_clusters, n_rows)), np.empty((n_clusters, n_rows))
    for n_parts in range(1, n_clusters):
        split_widest(values, labels, n_parts, members, centers)
    for _ in range(n_rounds):
        counts = place_centers(values, labels, members, centers)
        if not move_rows(values, centers, counts, closeness, labels):
            break
    counts = place_centers(values, labels, members, centers)
    between = 0.0
    for c in range(n_clusters):
        for k in range(width):
            between += counts[c] * centers[c, k] * centers[c, k]
    return min(1.0, between / total)


@njit_cached
def place_centers(values, labels, members, centers):
    """Centers become the means of their rows; how many rows each has."""
    counts = np.zeros(len(centers))
    members[:] = 0.0
    for i in range(len(labels)):
        members[labels[i], i] = 1.0
        counts[labels[i]] += 1.0
    np.dot(members, values, centers)
    for c in range(len(centers)):
        if counts[c] > 0.0:
            centers[c] /= counts[c]
    return counts


@njit_cached
def move_rows(values, centers, counts, closeness, labels):
    """Give every row to the nearest center that has rows, the first of equals; whether any row moved."""
    np.dot(centers, values.T, closeness)
    moved = False
    for c in range(len(centers)):
        half = 0.5 * np.sum(centers[c] * centers[c]) if counts[c] > 0.0 else np.inf
        for i in range(len(labels)):
            closeness[c, i] -= half
    for i in range(len(labels)):
        nearest = 0
        for c in range(1, len(centers)):
            if closeness[c, i] > closeness[nearest, i]:
                nearest = c
        moved |= nearest != labels[i]
        labels[i] = nearest
    return moved


@njit_cached
def split_widest(values, labels, n_parts, members, centers):
    """Cut the part of largest scatter in two, at its mean, across the line from there to its farthest row."""
    n_rows, width = values.shape
    place_centers(values, labels, members, centers)
    distance, scatter = np.zeros(n_rows), np.zeros(n_parts)
    for i in range(n_rows):
        for k in range(width):
            distance[i] += (values[i, k] - centers[labels[i], k]) ** 2
        scatter[labels[i]] += distance[i]
    widest = np.argmax(scatter)
    center = centers[widest]
    farthest = values[np.argmax(np.where(labels == widest, distance, -1.0))]
    for i in range(n_rows):
        if labels[i] == widest:
            along = 0.0
            for k in range(width):
                along += (values[i, k] - center[k]) * (farthest[k] - center[k])
            if along > 0.0:
                labels[i] = n_parts
