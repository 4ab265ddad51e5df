!> The computation of embed_heat.cpp in Fortran: a torus, a halo two cells deep (two steps per exchange) and a residual
!> with the same bits on any number of ranks.
program heat
  use isohalo
  use mpi_f08
  implicit none
  integer, parameter :: dp = kind(1d0), nx = 300, ny = 200
  type(isohalo_domain) :: domain
  type(isohalo_halo) :: halo
  type(isohalo_reducer) :: total
  real(dp), allocatable :: u(:, :), v(:, :), other(:, :)
  real(dp) :: squares
  integer :: step, wider, x, y, x0, x1, y0, y1, rank

  call MPI_Init()
  call MPI_Comm_rank(MPI_COMM_WORLD, rank)

  ! This rank owns the cells x0..x1, y0..y1 of the torus; x is the fastest dimension.
  call domain%create(MPI_COMM_WORLD, [nx, ny], periodic=[.true., .true.])
  x0 = domain%first(1)
  x1 = domain%last(1)
  y0 = domain%first(2)
  y1 = domain%last(2)

  ! The ghosts that two steps of a 5-point stencil read.
  call halo%create(domain, radius=1, depth=2)
  call total%create(domain, isohalo_sum)
  allocate (u(x0 - halo%width:x1 + halo%width, y0 - halo%width:y1 + halo%width), source=0.0_dp)
  allocate (v, source=u)
  do y = y0, y1
    do x = x0, x1
      u(x, y) = sin(0.1_dp * (y - 1)) * mod(x - 1, 7)
    end do
  end do

  do step = 0, 99
    if (mod(step, 2) == 0) call halo%exchange(u)
    wider = 1 - mod(step, 2)  ! the first of two steps also updates one layer of ghosts
    do y = y0 - wider, y1 + wider
      do x = x0 - wider, x1 + wider
        v(x, y) = u(x, y) + 0.2_dp * (((u(x, y - 1) + u(x, y + 1)) + (u(x - 1, y) + u(x + 1, y))) - 4 * u(x, y))
      end do
    end do
    if (mod(step, 10) == 9) call total%reduce((v(x0:x1, y0:y1) - u(x0:x1, y0:y1))**2, squares)
    call move_alloc(u, other)
    call move_alloc(v, u)
    call move_alloc(other, v)
  end do
  if (rank == 0) print '(a, es24.16e3)', 'residual =', sqrt(squares)

  call total%free()
  call halo%free()
  call domain%free()
  call MPI_Finalize()
end program heat
