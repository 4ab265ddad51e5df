! MPI's Fortran 2008 interface alone: its collectives with libisohalo_mpi.so preloaded, and without. On ranks from 2 on.
program fortran_client
  use mpi_f08
  use, intrinsic :: iso_fortran_env, only: error_unit
  implicit none
  integer, parameter :: n = 1009
  integer :: rank, ranks, root, i, r, wrong = 0
  real(8) :: mine(n), got(n)
  real(8), allocatable :: whole(:)
  call MPI_Init()
  call MPI_Comm_rank(MPI_COMM_WORLD, rank)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks)
  allocate(whole(n * ranks))
  do root = 0, ranks - 1
    mine = [(real(rank * 1000 + i, 8), i = 1, n)]
    call MPI_Barrier(MPI_COMM_WORLD)
    call MPI_Allreduce(mine, got, n, MPI_DOUBLE_PRECISION, MPI_SUM, MPI_COMM_WORLD)
    wrong = wrong + count(got /= [(real(500 * ranks * (ranks - 1) + ranks * i, 8), i = 1, n)])
    got = -1
    call MPI_Reduce(mine, got, n, MPI_DOUBLE_PRECISION, MPI_MAX, root, MPI_COMM_WORLD)
    if (rank == root) wrong = wrong + count(got /= [(real((ranks - 1) * 1000 + i, 8), i = 1, n)])
    got = mine
    call MPI_Bcast(got, n, MPI_DOUBLE_PRECISION, root, MPI_COMM_WORLD)
    wrong = wrong + count(got /= [(real(root * 1000 + i, 8), i = 1, n)])
    call MPI_Gather(mine, n, MPI_DOUBLE_PRECISION, whole, n, MPI_DOUBLE_PRECISION, root, MPI_COMM_WORLD)
    call MPI_Scatter(whole, n, MPI_DOUBLE_PRECISION, got, n, MPI_DOUBLE_PRECISION, root, MPI_COMM_WORLD)
    wrong = wrong + count(got /= mine)
    got = mine
    call MPI_Allreduce(MPI_IN_PLACE, got, n, MPI_DOUBLE_PRECISION, MPI_MIN, MPI_COMM_WORLD)
    wrong = wrong + count(got /= [(real(i, 8), i = 1, n)])
    call MPI_Allgather(mine, n, MPI_DOUBLE_PRECISION, whole, n, MPI_DOUBLE_PRECISION, MPI_COMM_WORLD)
    wrong = wrong + count(whole /= [((real(r * 1000 + i, 8), i = 1, n), r = 0, ranks - 1)])
  end do
  if (wrong > 0) write (error_unit, *) 'rank', rank, ':', wrong, 'wrong numbers'
  call MPI_Finalize()
  if (wrong > 0) error stop 1
end program
