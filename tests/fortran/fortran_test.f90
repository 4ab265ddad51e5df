!> The Fortran module: ghosts of arrays of every kind, dimension and distribution hold the cell that they should, sums the
!> bits of one rank, and wrong calls are errors with the library's words.
program fortran_test
  use, intrinsic :: iso_fortran_env, only: int32, int64, real32, real64, error_unit
  use isohalo
  use mpi_f08
  implicit none
  integer :: failures = 0, all_failures, rank = 0, ranks
  type(isohalo_domain) :: kept

  call beside_mpi('before MPI_Init')
  call MPI_Init()
  call MPI_Comm_rank(MPI_COMM_WORLD, rank)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks)
  if (command_argument_count() > 0) call ends_the_program()
  call kinds()
  call one_sided()
  call components_and_parts()
  call own_distribution()
  call sums()
  call ranges()
  call errors()
  call MPI_Allreduce(failures, all_failures, 1, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD)
  if (rank == 0) print '(i0, a)', all_failures, ' failures'
  call kept%create(MPI_COMM_WORLD, [4 * ranks])
  call MPI_Finalize()
  call beside_mpi('after MPI_Finalize')
  if (all_failures + failures > 0) stop 1

contains

  subroutine check(ok, what)
    logical, intent(in) :: ok
    character(len=*), intent(in) :: what
    if (ok) return
    failures = failures + 1
    write (error_unit, '(a, i0, 5a)') 'rank ', rank, ': ', what, ' (', isohalo_error_text(), ')'
  end subroutine check

  !> Where MPI would end the program there are errors that say when it is.
  subroutine beside_mpi(when)
    character(len=*), intent(in) :: when
    type(isohalo_domain) :: domain
    type(isohalo_halo) :: halo
    integer :: ierror
    call domain%create(MPI_COMM_WORLD, [4, 4], ierror=ierror)
    call check(ierror /= MPI_SUCCESS .and. index(isohalo_error_text(), when) > 0, 'domain '//when)
    call domain%create_from_cart(MPI_COMM_WORLD, [4, 4], ierror)
    call check(ierror /= MPI_SUCCESS .and. index(isohalo_error_text(), when) > 0, 'cart '//when)
    if (when(:5) == 'after') then
      call halo%create(kept, ierror=ierror)
      call check(ierror /= MPI_SUCCESS .and. index(isohalo_error_text(), when) > 0, 'halo '//when)
      call kept%free(ierror)
    end if
    call check(ierror /= MPI_SUCCESS, 'free '//when)
  end subroutine beside_mpi

  !> A value of its own per cell of a grid of nx x ny, wrapped in x; -1 beyond y.
  elemental function cell(x, y, nx, ny) result(value)
    integer, intent(in) :: x, y, nx, ny
    integer :: value
    value = -1
    if (y >= 1 .and. y <= ny) value = 1000 * modulo(x - 1, nx) + y
  end function cell

  !> A 2-dimensional grid, periodic in x alone, of 17 x 11 cells.
  subroutine kinds()
    integer, parameter :: nx = 17, ny = 11, w = 3
    type(isohalo_domain) :: domain
    type(isohalo_halo) :: halo4, halo8
    integer(int32), allocatable, asynchronous :: a(:, :)
    real(real32), allocatable :: b(:, :)
    real(real64), allocatable :: c(:, :)
    integer, allocatable :: right(:, :)
    integer :: x, y, lo(2), hi(2)
    call domain%create(MPI_COMM_WORLD, [nx, ny], periodic=[.true., .false.])
    lo = domain%first(:2)
    hi = domain%last(:2)
    call check(all(domain%owned(:2) == hi - lo + 1) .and. product(domain%process_grid) == ranks, 'block')
    call halo4%create(domain, radius=1, depth=2, width=w, shape=isohalo_shape_moore, element=MPI_INTEGER)
    call halo8%create(domain, radius=1, depth=2, width=w, shape=isohalo_shape_moore)
    allocate (right(lo(1) - w:hi(1) + w, lo(2) - w:hi(2) + w), source=-1)
    do y = lo(2) - 2, hi(2) + 2
      do x = lo(1) - 2, hi(1) + 2
        right(x, y) = cell(x, y, nx, ny)
      end do
    end do
    allocate (a, mold=right)
    a = -1
    a(lo(1):hi(1), lo(2):hi(2)) = right(lo(1):hi(1), lo(2):hi(2))
    b = real(a, real32)
    c = real(a, real64)
    call halo4%start(a)
    call halo8%exchange(c)  ! while another is in flight
    call halo4%progress()
    call halo4%finish()
    call halo4%exchange(b)  ! of the same size
    call check(all(a == right), 'int32')
    call check(all(nint(b) == right), 'real32')
    call check(all(nint(c) == right), 'real64')
    call halo4%free()
    call halo8%free()
    call domain%free()
  end subroutine kinds

  !> A list of offsets: only lower x ghosts are filled.
  subroutine one_sided()
    integer, parameter :: nx = 13, ny = 9
    type(isohalo_domain) :: domain
    type(isohalo_halo) :: halo
    integer, allocatable :: a(:, :)
    integer :: x, y, lo(2), hi(2)
    call domain%create(MPI_COMM_WORLD, [nx, ny], periodic=[.true., .true.])
    lo = domain%first(:2)
    hi = domain%last(:2)
    call halo%create(domain, offsets=reshape([-2, 0], [2, 1]), element=MPI_INTEGER)
    call check(halo%width == 2, 'width of offsets')
    allocate (a(lo(1) - 2:hi(1) + 2, lo(2) - 2:hi(2) + 2), source=-1)
    do y = lo(2), hi(2)
      a(lo(1):hi(1), y) = cell([(x, x=lo(1), hi(1))], y, nx, ny)
    end do
    call halo%exchange(a)
    do y = lo(2), hi(2)
      call check(all(a(lo(1) - 2:lo(1) - 1, y) == cell([lo(1) - 2, lo(1) - 1], y, nx, ny)), 'ghosts below in x')
    end do
    call check(all(a(hi(1) + 1:, :) == -1) .and. all(a(:, :lo(2) - 1) == -1) .and. all(a(:, hi(2) + 1:) == -1), &
               'ghosts that are not read')
    call halo%free()
    call domain%free()
  end subroutine one_sided

  !> Three dimensions, a process grid of our own, two components per cell.
  subroutine components_and_parts()
    integer, parameter :: n(3) = [5, 6, 12]
    type(isohalo_domain) :: domain
    type(isohalo_halo) :: halo
    real(real64), allocatable :: a(:, :, :, :)
    integer :: x, y, z, lo(3), hi(3)
    call domain%create(MPI_COMM_WORLD, n, periodic=[.true., .true., .true.], process_grid=[1, 1, ranks])
    lo = domain%first(:3)
    hi = domain%last(:3)
    call check(all(domain%owned(:2) == n(:2)) .and. domain%coords(3) == rank, 'slabs')
    call halo%create(domain, components=2)
    allocate (a(2, lo(1) - 1:hi(1) + 1, lo(2) - 1:hi(2) + 1, lo(3) - 1:hi(3) + 1), source=-1.0_real64)
    do z = lo(3), hi(3)
      do y = lo(2), hi(2)
        do x = lo(1), hi(1)
          a(:, x, y, z) = [real(real64) :: x + 100 * y + 10000 * z, -x]
        end do
      end do
    end do
    call halo%exchange(a)
    call check(all(nint(a(1, lo(1):hi(1), 3, lo(3) - 1)) == [(x, x=1, n(1))] + 300 + 10000 * (modulo(lo(3) - 2, n(3)) + 1)), &
               'component 1')
    call check(all(nint(a(2, 0, lo(2):hi(2), hi(3))) == -n(1)), 'component 2')
    call halo%free()
    call domain%free()
  end subroutine components_and_parts

  !> A Cartesian communicator of the program's own, uneven blocks: along x in 2 + coordinate cells, along y in 3.
  subroutine own_distribution()
    type(MPI_Comm) :: cart
    type(isohalo_domain) :: domain
    type(isohalo_halo) :: halo
    integer, allocatable :: a(:, :), right(:, :)
    integer :: dims(2), coords(2), lo(2), hi(2), x, y, nx
    dims = 0
    call MPI_Dims_create(ranks, 2, dims)
    call MPI_Cart_create(MPI_COMM_WORLD, 2, dims, [.true., .false.], .false., cart)
    call MPI_Cart_coords(cart, rank, 2, coords)
    call domain%create_from_cart(cart, [2 + coords(1), 3])
    lo = domain%first(:2)
    hi = domain%last(:2)
    nx = 2 * dims(1) + dims(1) * (dims(1) - 1) / 2
    call check(all(domain%coords(:2) == coords) .and. all(domain%process_grid(:2) == dims), 'coordinates of cart')
    call check(all(domain%global(:2) == [nx, 3 * dims(2)]) .and. lo(2) == 3 * coords(2) + 1, 'grid of blocks')
    call halo%create(domain, shape=isohalo_shape_moore, element=MPI_INTEGER)
    allocate (right(lo(1) - 1:hi(1) + 1, lo(2) - 1:hi(2) + 1))
    do y = lo(2) - 1, hi(2) + 1
      do x = lo(1) - 1, hi(1) + 1
        right(x, y) = cell(x, y, nx, 3 * dims(2))
      end do
    end do
    allocate (a, mold=right)
    a = -1
    a(lo(1):hi(1), lo(2):hi(2)) = right(lo(1):hi(1), lo(2):hi(2))
    call halo%exchange(a)
    call check(all(a == right), 'ghosts of own blocks')
    call halo%free()
    call domain%free()
    call MPI_Comm_free(cart)
  end subroutine own_distribution

  !> Magnitudes far apart, so that every order of adding has bits of its own.
  elemental function number(i) result(x)
    integer, intent(in) :: i
    real(real64) :: x
    x = scale(sin(0.7_real64 * i), modulo(7 * i, 60) - 30)
  end function number

  subroutine sums()
    integer, parameter :: nx = 23, ny = 19
    type(isohalo_domain) :: domain, whole
    type(isohalo_reducer) :: ours, alone, bare
    real(real64), allocatable :: a(:, :), all_cells(:, :)
    real(real64) :: r(4)
    integer :: x, y, op, lo(2), hi(2)
    call domain%create(MPI_COMM_WORLD, [nx, ny])
    call whole%create(MPI_COMM_SELF, [nx, ny])
    lo = domain%first(:2)
    hi = domain%last(:2)
    all_cells = reshape(number([(x, x=1, nx * ny)]), [nx, ny])
    allocate (a(lo(1) - 1:hi(1) + 1, lo(2) - 1:hi(2) + 1), source=huge(1.0_real64))
    do y = lo(2), hi(2)
      a(lo(1):hi(1), y) = all_cells(lo(1):hi(1), y)
    end do
    do op = isohalo_sum, isohalo_exact_sum
      call ours%create(domain, op, width=1)
      call bare%create(domain, op)
      call alone%create(whole, op)
      call ours%reduce(a, r(1))
      call alone%reduce(all_cells, r(2))
      call bare%reduce(a(lo(1):hi(1), lo(2):hi(2)), r(3))  ! a section
      call bare%start(1 * a(lo(1):hi(1), lo(2):hi(2)))
      call bare%wait(r(4))
      call check(all(transfer(r, 1_int64, 4) == transfer(r(1), 1_int64)), 'sums of cells')
      call ours%free()
      call bare%free()
      call alone%free()
    end do
    call whole%free()
    call domain%free()
  end subroutine sums

  subroutine ranges()
    integer, parameter :: n = 1003
    type(isohalo_reducer) :: ours, alone
    real(real64), allocatable :: a(:)
    real(real64) :: r(2)
    integer :: op, first, count, i
    do op = isohalo_sum, isohalo_exact_sum
      first = 1
      count = merge(n, 0, rank == 0)  ! all, or an even part
      if (op /= isohalo_max) first = n * rank / ranks + 1
      if (op /= isohalo_max) count = n * (rank + 1) / ranks - first + 1
      a = number([(i, i=first, first + count - 1)])
      call ours%create(MPI_COMM_WORLD, count, op)
      call alone%create(MPI_COMM_SELF, n, op)
      call ours%reduce(a, r(1))
      call alone%reduce(number([(i, i=1, n)]), r(2))
      call check(transfer(r(1), 1_int64) == transfer(r(2), 1_int64), 'sums of ranges')
      call ours%free()
      call alone%free()
    end do
  end subroutine ranges

  subroutine refused(code, words)
    integer, intent(in) :: code
    character(len=*), intent(in) :: words
    call check(code /= MPI_SUCCESS .and. index(isohalo_error_text(), words) > 0, 'an error with the words: '//words)
  end subroutine refused

  !> An error that nobody asks for.
  subroutine ends_the_program()
    type(isohalo_domain) :: domain
    call domain%create(MPI_COMM_WORLD, [integer ::])
    print '(a)', 'still here'
  end subroutine ends_the_program

  subroutine errors()
    type(isohalo_domain) :: domain, other
    type(isohalo_halo) :: halo, none
    type(isohalo_reducer) :: total
    real(real64), allocatable :: a(:, :), wide(:, :)
    real(real32), allocatable :: short(:, :)
    real(real64) :: r
    integer :: code
    call other%create(MPI_COMM_WORLD, [10, 10], process_grid=[ranks + 1, 1], ierror=code)
    call refused(code, 'as many blocks as there are ranks')
    call other%create(MPI_COMM_WORLD, [10, 10], periodic=[.true.], ierror=code)
    call refused(code, 'a value per dimension')
    call other%create(MPI_COMM_WORLD, [1, 1, 1, 1, 1], ierror=code)
    call refused(code, '1 to 4 dimensions')
    call other%create_from_cart(MPI_COMM_WORLD, [4, 4], ierror=code)
    call refused(code, 'Cartesian topology')
    if (ranks > 1) then
      call other%create(MPI_COMM_WORLD, [10, 10 + rank], ierror=code)
      call refused(code, 'the shape differs between ranks')
      call other%create(MPI_COMM_WORLD, [10, merge(0, 10, rank == 1)], ierror=code)
      call refused(code, 'refused on a rank')
    end if
    call none%create(other, ierror=code)
    call refused(code, 'was not created')
    call domain%create(MPI_COMM_WORLD, [10, 8], ierror=code)
    call check(code == MPI_SUCCESS, 'a domain')
    call halo%create(domain, depth=2, width=1, ierror=code)
    call refused(code, 'ghost layers')
    call halo%create(domain, offsets=reshape([1, 2, 3], [3, 1]), ierror=code)
    call refused(code, 'offsets must have the shape')
    if (ranks > 1) then  ! on one rank alone
      call halo%create(domain, offsets=reshape([1, 2, 3, 4, 5, 6], [merge(3, 2, rank == 1), merge(2, 3, rank == 1)]), &
                       ierror=code)
      call refused(code, merge('offsets must have', 'refused on a rank', rank == 1))
      call halo%create(domain, components=merge(-1, 1, rank == 1), ierror=code)
      call refused(code, merge('components is neg', 'refused on a rank', rank == 1))
    end if
    call halo%create(domain)
    allocate (a(domain%owned(1) + 2, domain%owned(2) + 2), source=0.0_real64)
    allocate (short(domain%owned(1) + 2, domain%owned(2) + 2), source=0.0)
    allocate (wide(domain%owned(1) + 3, domain%owned(2) + 2), source=0.0_real64)
    call halo%exchange(wide, ierror=code)
    call refused(code, 'the array has shape (')
    call halo%exchange(short, ierror=code)
    call refused(code, 'has 4 bytes, it must have 8')
    call halo%exchange(wide(:size(wide, 1) - 1, :), ierror=code)
    call refused(code, 'not contiguous')
    call halo%exchange(wide(:, 1), ierror=code)
    call refused(code, 'the array has shape (')
    call halo%finish(ierror=code)
    call refused(code, 'finish without start')
    call halo%exchange(a, ierror=code)
    call check(code == MPI_SUCCESS, 'an exchange after errors')
    call total%create(domain, 17, ierror=code)
    call refused(code, 'unknown operation')
    call total%create(domain, isohalo_sum)
    call total%reduce(a, r, ierror=code)
    call refused(code, 'reduction: the array has shape')
    call total%free()
    call halo%free()
    call halo%exchange(a, ierror=code)
    call refused(code, 'was freed')
    call domain%free()
  end subroutine errors
end program fortran_test
