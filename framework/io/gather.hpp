#pragma once
/// The cells of all ranks brought together. Private to framework/io.

#include <cstring>
#include <numeric>
#include <vector>

#include "datatypes/mpi_check.hpp"
#include "framework/domain/cartesian_domain.hpp"

namespace isohalo::detail {

/// Brings the cells of every rank, packed in index order, to rank 0, into `whole`: the cells of `box` in index
/// order, ignored elsewhere. `boxes`: each rank's part of it, some may be empty; less than 2 GiB in all.
/// Collective.
template <class T, int D>
void gather_cells(const Communicator& comm, const std::vector<Box<D>>& boxes, const std::vector<T>& mine,
                  const Box<D>& box, T* whole) {
  std::vector<int> bytes, begin(boxes.size());
  for (const auto& b : boxes) bytes.push_back(static_cast<int>(b.cells() * static_cast<std::int64_t>(sizeof(T))));
  std::exclusive_scan(bytes.begin(), bytes.end(), begin.begin(), 0);
  const bool root = comm.rank() == 0;
  std::vector<T> packed(root ? static_cast<std::size_t>(begin.back() + bytes.back()) / sizeof(T) : 0);
  MPI_Request request = MPI_REQUEST_NULL;
  mpi_check(MPI_Igatherv(mine.data(), static_cast<int>(mine.size() * sizeof(T)), MPI_BYTE, packed.data(),
                         bytes.data(), begin.data(), MPI_BYTE, 0, comm.get(), &request),
            "MPI_Igatherv of cells", comm.get());
  comm.wait(request, "cells");
  if (!root) return;
  const T* from = packed.data();
  for (const auto& b : boxes)
    for_each_row(b, [&](const Index<D>& i) {
      const std::int64_t n = b.extent(D - 1);
      std::memcpy(whole + linear_index(box, i), from, static_cast<std::size_t>(n) * sizeof(T));
      from += n;
    });
}

}  // namespace isohalo::detail
