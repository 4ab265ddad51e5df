/// Before MPI_Init and after MPI_Finalize: named errors where something is used, and nothing when it goes.

#include <mpi.h>

#include <cstdio>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "datatypes/datatype.hpp"
#include "framework/halo/halo_plan.hpp"
#include "framework/isohalo.h"
#include "framework/neighborhood/iso_comm.hpp"
#include "framework/neighborhood/neighbor_call.hpp"
#ifdef ISOHALO_TEST_REDUCE
#include "framework/reduce/allreduce.hpp"
#include "framework/reduce/tree_reducer.hpp"
#endif

using namespace isohalo;

namespace {

int failures = 0;

void expect(bool ok, const std::string& what) {
  if (ok) return;
  ++failures;
  std::fprintf(stderr, "FAILED: %s\n", what.c_str());
}

void refused(const std::string& part, const char* what, const std::function<void()>& use) {
  std::string text = "no error";
  try {
    use();
  } catch (const UsageError& e) {
    text = e.what();
  }
  expect(text.find(part) != std::string::npos, what + (": " + text));
}

void all_refused(const std::string& part) {
  refused(part, "domain", [] { CartesianDomain<1>(MPI_COMM_WORLD, {64}); });
  refused(part, "communicator", [] { Communicator::of(MPI_COMM_WORLD); });
  refused(part, "type", [] { value_type<long double>(); });
  refused(part, "region", [] { region_type<1>(Region<1>::whole({{0}, {3}}), {0}, {1}, MPI_DOUBLE); });
  refused(part, "triangle", [] { triangular_type(2, 1, 1, 3, 0, MPI_DOUBLE); });
  const std::vector<int> offsets{1};
  refused(part, "neighborhood", [&] { IsoComm(MPI_COMM_WORLD, offsets); });
  refused(part, "layout", [] { layout_of(MPI_DOUBLE); });
  const auto code = [&](int rc, const char* what) {
    expect(rc != MPI_SUCCESS, what);
    expect(std::string(isohalo_error_text()).find(part) != std::string::npos, std::string(what) + " text");
  };
  isohalo_neighborhood iso = nullptr;
  isohalo_halo halo = nullptr;
  MPI_Datatype type = MPI_DATATYPE_NULL;
  int rank = 0;
  const long long owned[] = {4};
  code(isohalo_neighborhood_create(MPI_COMM_WORLD, 1, offsets.data(), &iso), "isohalo_neighborhood_create");
  code(isohalo_halo_create(MPI_COMM_WORLD, owned, 1, ISOHALO_SHAPE_STAR, 1, 1, MPI_DOUBLE, &halo),
       "isohalo_halo_create");
  code(isohalo_cart_relative_rank(MPI_COMM_WORLD, offsets.data(), &rank), "isohalo_cart_relative_rank");
  code(isohalo_type_create_triangular(2, 1, 1, 3, 0, MPI_DOUBLE, &type), "isohalo_type_create_triangular");
}

}  // namespace

int main(int argc, char** argv) {
  all_refused("before MPI_Init");
  MPI_Init(&argc, &argv);
  MPI_Comm cart = MPI_COMM_NULL;
  int size = 1, one = 1;
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Cart_create(MPI_COMM_WORLD, 1, &size, &one, 0, &cart);
  auto domain = std::make_unique<CartesianDomain<1>>(MPI_COMM_WORLD, Index<1>{8 * size});
  std::vector<std::unique_ptr<HaloPlan<1>>> plans;
  std::vector<double> values(static_cast<std::size_t>(adopted_size(domain->owned(), 1)));
  const auto array = adopt(std::span(values), domain->owned(), 1);
  for (const auto& name : exchange_names()) {
    HaloOptions<1> options;
    options.exchange = exchange_of_name(name);
    plans.push_back(std::make_unique<HaloPlan<1>>(*domain, StencilShape<1>::star(1), 1, options));
    plans.back()->exchange(array);
  }
  isohalo_neighborhood iso = nullptr;
  isohalo_halo halo = nullptr;
  const long long owned[] = {4};
  double cells[6] = {};
  expect(isohalo_neighborhood_moore(cart, 1, 0, &iso) == MPI_SUCCESS, "neighborhood");
  expect(isohalo_halo_create(cart, owned, 1, ISOHALO_SHAPE_STAR, 1, 1, MPI_DOUBLE, &halo) == MPI_SUCCESS, "halo");
  expect(isohalo_halo_exchange(halo, cells) == MPI_SUCCESS, "exchange");
  auto type = std::make_unique<Datatype>(bytes_type(24));
  auto iso_comm = std::make_unique<IsoComm>(cart, std::vector<int>{1});
#ifdef ISOHALO_TEST_REDUCE
  auto sum = std::make_unique<ScheduledAllreduce>(MPI_COMM_WORLD, 1, MPI_DOUBLE, MPI_SUM);
#endif
  MPI_Comm_free(&cart);
  MPI_Finalize();
  all_refused("after MPI_Finalize");
  refused("after MPI_Finalize", "type's size", [&] { (void)type->size(); });
  if (size > 1) {
    for (auto& plan : plans) refused("after MPI_Finalize", "exchange", [&] { plan->exchange(array); });
  }
  refused("after MPI_Finalize", "plan", [&] { HaloPlan<1>(*domain, StencilShape<1>::star(1), 1); });
#ifdef ISOHALO_TEST_REDUCE
  refused("after MPI_Finalize", "reducer", [&] { TreeReducer<double, 1, Sum> reducer(*domain); });
  refused("after MPI_Finalize", "start", [&] { sum->start(cells); });
  refused("after MPI_Finalize", "reduce", [&] { sum->reduce(cells); });
  sum.reset();
#endif
  expect(isohalo_halo_exchange(halo, cells) != MPI_SUCCESS, "C exchange");
  expect(isohalo_neighborhood_free(&iso) != MPI_SUCCESS, "C free");
  plans.clear(), domain.reset(), type.reset(), iso_comm.reset();  // none of it calls MPI
  return failures ? 1 : 0;
}
