!> Halo exchange and reductions whose bits do not depend on the number of ranks, for Fortran arrays.
!>
!> Everything is in Fortran's order: dimension 1 is the fastest, in arrays, shapes, offsets and process grids alike.
!> Beneath, the C interface (isohalo.h) sees the same memory with all dimensions reversed, so a sum has the bits that a
!> C program gets for its array (.., y, x).
!>
!> Every procedure has an optional `ierror`, an MPI error code; without it an error ends the program with the library's
!> message, which isohalo_error_text() has, too. Procedures are collective over the domain's ranks where nothing else is
!> said: called by all of them, in the same order.
module isohalo
  use, intrinsic :: iso_c_binding
  use, intrinsic :: iso_fortran_env, only: error_unit, int64
  use mpi_f08
  use isohalo_c
  implicit none
  private
  public :: isohalo_domain, isohalo_halo, isohalo_reducer, isohalo_error_text

  !> The cells that a stencil reads: a cube, a cross, or a diamond of the given radius.
  integer, parameter, public :: isohalo_shape_moore = 0, isohalo_shape_star = 1, isohalo_shape_von_neumann = 2
  !> Of minimum and maximum a NaN wins; isohalo_exact_sum is the exact sum of all numbers, rounded once.
  integer, parameter, public :: isohalo_sum = 0, isohalo_min = 1, isohalo_max = 2, isohalo_exact_sum = 3
  integer, parameter :: most = 4

  !> A grid of 1 to 4 dimensions cut into one block per rank. Of the arrays below 1:dims count.
  type :: isohalo_domain
    integer :: dims = 0
    integer :: global(most) = 1                       !< cells of the grid
    integer :: owned(most) = 1                        !< cells of this rank's block
    integer :: first(most) = 1, last(most) = 1        !< its global indices, which begin at 1
    integer :: process_grid(most) = 1, coords(most) = 0
    !> The module's own communicator, its topology in reverse order. Its errors return.
    type(MPI_Comm) :: cart
  contains
    procedure :: create => domain_create
    procedure :: create_from_cart => domain_create_from_cart
    procedure :: free => domain_free
  end type isohalo_domain

  !> The exchange of the ghosts of an array: of any type and kind, contiguous, of shape owned + 2 width.
  type :: isohalo_halo
    integer :: width = 0                              !< ghost layers on every side of an array
    type(c_ptr), private :: handle = c_null_ptr
    integer, private :: cart = 0, dims = 0
    integer(c_long_long), private :: owned(most) = 1, bytes = 0
  contains
    procedure :: create => halo_create
    procedure :: exchange => halo_exchange
    procedure :: start => halo_start                  !< until finish do not touch ghosts nor write owned cells
    procedure :: progress => halo_progress            !< moves on what can move, between the two; never waits
    procedure :: finish => halo_finish
    procedure :: free => halo_free
  end type isohalo_halo

  !> One result of many real(real64) numbers, the same bits on all ranks and on any number of ranks.
  type :: isohalo_reducer
    type(c_ptr), private :: handle = c_null_ptr
    integer, private :: comm = 0, dims = 0, width = 0
    integer(c_long_long), private :: owned(most) = 1
  contains
    procedure, private :: reducer_create_cells, reducer_create_range
    !> create(domain, op [, width]): a number per cell; create(comm, count, op): ranges in the order of the ranks.
    generic :: create => reducer_create_cells, reducer_create_range
    procedure :: reduce => reducer_reduce
    procedure :: start => reducer_start               !< reads all of the array
    procedure :: wait => reducer_wait
    procedure :: free => reducer_free
  end type isohalo_reducer

contains

  !> What the last error of this process was, "" when there was none. Local.
  function isohalo_error_text() result(text)
    character(len=:), allocatable :: text
    type(c_ptr) :: from
    character(kind=c_char), pointer :: letters(:)
    integer :: k
    from = c_error_text()
    call c_f_pointer(from, letters, [int(c_strlen(from))])
    allocate (character(len=size(letters)) :: text)
    do k = 1, size(letters)
      text(k:k) = letters(k)
    end do
  end function isohalo_error_text

  !> Hands a code to a caller who wants it; ends the program otherwise.
  subroutine conclude(code, ierror)
    integer, intent(in) :: code
    integer, intent(out), optional :: ierror
    if (present(ierror)) then
      ierror = code
    else if (code /= MPI_SUCCESS) then
      write (error_unit, '(2a)') 'isohalo: error: ', isohalo_error_text()
      flush (error_unit)
      if (c_ready() /= MPI_SUCCESS) error stop 3
      call MPI_Abort(MPI_COMM_SELF, 3)
    end if
  end subroutine conclude

  function refuse(text) result(code)
    character(len=*), intent(in) :: text
    integer :: code
    code = c_refuse(text, len(text))
  end function refuse

  !> Whether all ranks have the same numbers.
  function same_on_all(comm, numbers) result(same)
    type(MPI_Comm), intent(in) :: comm
    integer, intent(in) :: numbers(:)
    logical :: same
    integer :: both(2 * size(numbers)), greatest(2 * size(numbers))
    both = [numbers, -numbers]
    call MPI_Allreduce(both, greatest, size(both), MPI_INTEGER, MPI_MAX, comm)
    same = all(greatest(:size(numbers)) == -greatest(size(numbers) + 1:))
  end function same_on_all

  !> Cuts a grid of `shape` cells over the ranks of `comm`, which is left as it is. Without a process grid the library
  !> chooses one. Equal arguments on all ranks; results do not depend on the process grid.
  subroutine domain_create(self, comm, shape, periodic, process_grid, ierror)
    class(isohalo_domain), intent(inout) :: self
    type(MPI_Comm), intent(in) :: comm
    integer, intent(in) :: shape(:)
    logical, intent(in), optional :: periodic(:)
    integer, intent(in), optional :: process_grid(:)
    integer, intent(out), optional :: ierror
    integer :: ranks, code, d, me
    integer :: dims(most), coords(most)
    logical :: wraps(most)
    code = c_ready()
    if (code /= MPI_SUCCESS) then
      call conclude(code, ierror)
      return
    end if
    call MPI_Comm_size(comm, ranks)
    call MPI_Comm_rank(comm, me)
    d = size(shape)
    dims = 1
    wraps = .false.
    code = MPI_SUCCESS
    if (d < 1 .or. d > most) then
      code = refuse('domain: a grid has 1 to 4 dimensions')
    else
      if (present(periodic)) then
        if (size(periodic) == d) wraps(:d) = periodic
        if (size(periodic) /= d) code = refuse('domain: periodic must have a value per dimension')
      end if
      if (.not. present(process_grid)) then
        if (code == MPI_SUCCESS) code = c_process_grid(ranks, d, int(shape(d:1:-1), c_long_long), dims)
        dims(:d) = dims(d:1:-1)
      else if (size(process_grid) /= d) then
        code = refuse('domain: the process grid must have a number per dimension')
      else if (any(process_grid < 1) .or. product(int(process_grid, int64)) /= ranks) then
        code = refuse('domain: the process grid must have as many blocks as there are ranks')
      else if (any(process_grid > shape)) then
        code = refuse('domain: the process grid has more blocks than cells in a dimension')
      else
        dims(:d) = process_grid
      end if
    end if
    ! All ranks go on, or none.
    if (.not. same_on_all(comm, [code])) then
      code = refuse('domain: the arguments are refused on a rank')
    else if (code == MPI_SUCCESS) then
      if (.not. same_on_all(comm, [d])) then
        code = refuse('domain: the number of dimensions differs between ranks')
      else if (.not. same_on_all(comm, [shape, dims, merge(1, 0, wraps)])) then
        if (.not. same_on_all(comm, shape)) then
          code = refuse('domain: the shape differs between ranks')
        else if (.not. same_on_all(comm, dims)) then
          code = refuse('domain: the process grid differs between ranks')
        else
          code = refuse('domain: what is periodic differs between ranks')
        end if
      end if
    end if
    if (code == MPI_SUCCESS) then
      call MPI_Cart_create(comm, d, dims(d:1:-1), wraps(d:1:-1), .false., self%cart)
      call MPI_Cart_coords(self%cart, me, d, coords)
      call describe(self, dims(:d), coords(d:1:-1))
      self%global(:d) = shape
      self%first(:d) = int(int(shape, int64) * self%coords(:d) / dims(:d)) + 1
      self%last(:d) = int(int(shape, int64) * (self%coords(:d) + 1) / dims(:d))
      self%owned(:d) = self%last(:d) - self%first(:d) + 1
    end if
    call conclude(code, ierror)
  end subroutine domain_create

  !> The program's own distribution: `cart` has a Cartesian topology whose dimension k is dimension k of the arrays, this
  !> rank owns a block of `owned` cells; together the blocks tile a box.
  subroutine domain_create_from_cart(self, cart, owned, ierror)
    class(isohalo_domain), intent(inout) :: self
    type(MPI_Comm), intent(in) :: cart
    integer, intent(in) :: owned(:)
    integer, intent(out), optional :: ierror
    type(MPI_Comm) :: reversed
    integer :: code, d, j, kind, key, next
    integer :: dims(most), coords(most), below(most)
    logical :: wraps(most)
    code = c_ready()
    if (code /= MPI_SUCCESS) then
      call conclude(code, ierror)
      return
    end if
    call MPI_Topo_test(cart, kind)
    d = 0
    if (kind == MPI_CART) call MPI_Cartdim_get(cart, d)
    if (d < 1 .or. d > most) then
      code = refuse('domain: the communicator must have a Cartesian topology of 1 to 4 dimensions')
    else if (.not. same_on_all(cart, [size(owned)])) then
      code = refuse('domain: the arguments differ between ranks')
    else if (size(owned) /= d) then
      code = refuse('domain: owned must have a number per dimension of the communicator')
    end if
    if (code == MPI_SUCCESS) then
      call MPI_Cart_get(cart, d, dims, wraps, coords)
      key = 0
      do j = d, 1, -1
        key = key * dims(j) + coords(j)
      end do
      call MPI_Comm_split(cart, 0, key, reversed)
      call MPI_Cart_create(reversed, d, dims(d:1:-1), wraps(d:1:-1), .false., self%cart)
      call MPI_Comm_free(reversed)
      call describe(self, dims(:d), coords(:d))
      self%owned(:d) = owned
      ! Where this block begins, and where the grid ends: along each line of blocks.
      do j = 1, d
        call line_sums(self, j, owned(j), below(j), next)
        self%global(j) = next
        self%first(j) = below(j) + 1
        self%last(j) = below(j) + owned(j)
      end do
    end if
    call conclude(code, ierror)
  contains
    !> Cells of the blocks before this one in dimension j, and of all in this line.
    subroutine line_sums(domain, j, mine, before, total)
      class(isohalo_domain), intent(in) :: domain
      integer, intent(in) :: j, mine
      integer, intent(out) :: before, total
      type(MPI_Comm) :: line
      logical :: keep(most)
      keep = .false.
      keep(domain%dims + 1 - j) = .true.
      call MPI_Cart_sub(domain%cart, keep(:domain%dims), line)
      before = 0
      call MPI_Exscan(mine, before, 1, MPI_INTEGER, MPI_SUM, line)
      if (domain%coords(j) == 0) before = 0
      call MPI_Allreduce(mine, total, 1, MPI_INTEGER, MPI_SUM, line)
      call MPI_Comm_free(line)
    end subroutine line_sums
  end subroutine domain_create_from_cart

  subroutine describe(self, dims, coords)
    class(isohalo_domain), intent(inout) :: self
    integer, intent(in) :: dims(:), coords(:)
    call MPI_Comm_set_errhandler(self%cart, MPI_ERRORS_RETURN)
    self%dims = size(dims)
    self%process_grid = 1
    self%coords = 0
    self%global = 1
    self%owned = 1
    self%first = 1
    self%last = 1
    self%process_grid(:self%dims) = dims
    self%coords(:self%dims) = coords
  end subroutine describe

  !> After everything that was made on it.
  subroutine domain_free(self, ierror)
    class(isohalo_domain), intent(inout) :: self
    integer, intent(out), optional :: ierror
    integer :: code
    code = MPI_SUCCESS
    if (self%dims > 0) then
      code = c_ready()
      if (code == MPI_SUCCESS) call MPI_Comm_free(self%cart)
    end if
    self%dims = 0
    call conclude(code, ierror)
  end subroutine domain_free

  !> The ghosts that `depth` steps of a stencil read, which is a shape with a radius, or a list: offsets(:, k) is the k-th
  !> cell that it reads. Arrays have `width` ghost layers on every side (by default as many as are read), cells of
  !> `components` elements (a first dimension of that extent) of MPI type `element` (by default MPI_DOUBLE_PRECISION).
  subroutine halo_create(self, domain, radius, depth, width, shape, offsets, element, components, ierror)
    class(isohalo_halo), intent(inout) :: self
    type(isohalo_domain), intent(in) :: domain
    integer, intent(in), optional :: radius, depth, width, shape, offsets(:, :), components
    type(MPI_Datatype), intent(in), optional :: element
    integer, intent(out), optional :: ierror
    integer :: code, d, r, steps, form, s, parts
    type(MPI_Datatype) :: t
    integer(c_int), allocatable :: relative(:)
    d = domain%dims
    r = 1
    steps = 1
    form = isohalo_shape_star
    s = -1
    parts = 1
    t = MPI_DOUBLE_PRECISION
    if (present(radius)) r = radius
    if (present(depth)) steps = depth
    if (present(shape)) form = shape
    if (present(element)) t = element
    if (present(components)) parts = components
    allocate (relative(0))
    code = MPI_SUCCESS
    if (d == 0) code = refuse('halo: the domain was not created')
    if (d > 0) then
      code = c_ready()
      if (code /= MPI_SUCCESS) then
        call conclude(code, ierror)
        return
      end if
    end if
    if (parts < 0 .and. code == MPI_SUCCESS) code = refuse('halo: the number of components is negative')
    if (t == MPI_DATATYPE_NULL .and. code == MPI_SUCCESS) code = refuse('halo: the element type is MPI_DATATYPE_NULL')
    if (present(offsets) .and. code == MPI_SUCCESS) then
      if (size(offsets, 1) /= d) then
        code = refuse('halo: offsets must have the shape (dimensions, number of offsets)')
      else
        s = size(offsets, 2)
        relative = reshape(offsets(d:1:-1, :), [size(offsets)])
        r = 0
        if (s > 0) r = maxval(abs(offsets))
      end if
    end if
    if (d > 0) then
      if (.not. same_on_all(domain%cart, [code]) .and. code == MPI_SUCCESS) &
        code = refuse('halo: the arguments are refused on a rank')
    end if
    if (code == MPI_SUCCESS) then
      self%width = r * steps
      if (present(width)) self%width = width
      self%dims = d
      self%cart = domain%cart%MPI_VAL
      self%owned(:d) = domain%owned(d:1:-1)
      code = c_halo_create(self%cart, self%owned, self%width, form, r, s, relative, steps, t%MPI_VAL, parts, &
                           self%handle, self%bytes)
    end if
    call conclude(code, ierror)
  end subroutine halo_create

  subroutine halo_exchange(self, array, ierror)
    class(isohalo_halo), intent(in) :: self
    type(*), dimension(..), intent(inout), asynchronous :: array
    integer, intent(out), optional :: ierror
    integer :: code
    code = c_halo_start(self%cart, self%handle, array, self%dims, self%owned, self%width, self%bytes)
    if (code == MPI_SUCCESS) code = c_halo_finish(self%handle)
    call conclude(code, ierror)
  end subroutine halo_exchange

  subroutine halo_start(self, array, ierror)
    class(isohalo_halo), intent(in) :: self
    type(*), dimension(..), intent(inout), asynchronous :: array
    integer, intent(out), optional :: ierror
    call conclude(c_halo_start(self%cart, self%handle, array, self%dims, self%owned, self%width, self%bytes), ierror)
  end subroutine halo_start

  subroutine halo_progress(self, ierror)
    class(isohalo_halo), intent(in) :: self
    integer, intent(out), optional :: ierror
    call conclude(c_halo_progress(self%handle), ierror)
  end subroutine halo_progress

  !> The array that was started should be `asynchronous` where it is used between the two calls.
  subroutine halo_finish(self, ierror)
    class(isohalo_halo), intent(in) :: self
    integer, intent(out), optional :: ierror
    call conclude(c_halo_finish(self%handle), ierror)
  end subroutine halo_finish

  !> Completes an exchange in flight.
  subroutine halo_free(self, ierror)
    class(isohalo_halo), intent(inout) :: self
    integer, intent(out), optional :: ierror
    call conclude(c_halo_free(self%handle), ierror)
  end subroutine halo_free

  !> Of one number per cell: arrays of shape owned + 2 width, whose ghosts are not read. By default there are none.
  subroutine reducer_create_cells(self, domain, op, width, ierror)
    class(isohalo_reducer), intent(inout) :: self
    type(isohalo_domain), intent(in) :: domain
    integer, intent(in) :: op
    integer, intent(in), optional :: width
    integer, intent(out), optional :: ierror
    integer :: code, d
    d = domain%dims
    self%dims = d
    self%width = 0
    if (present(width)) self%width = width
    if (d == 0) then
      code = refuse('reducer: the domain was not created')
    else
      self%comm = domain%cart%MPI_VAL
      self%owned(:d) = domain%owned(d:1:-1)
      code = c_reducer_create(self%comm, 1, self%owned, self%width, op, self%handle)
    end if
    call conclude(code, ierror)
  end subroutine reducer_create_cells

  !> Of `count` numbers of this rank, after those of the ranks before it. Errors go to the error handler of `comm` first.
  subroutine reducer_create_range(self, comm, count, op, ierror)
    class(isohalo_reducer), intent(inout) :: self
    type(MPI_Comm), intent(in) :: comm
    integer, intent(in) :: count, op
    integer, intent(out), optional :: ierror
    self%dims = 1
    self%width = 0
    self%comm = comm%MPI_VAL
    self%owned(1) = count
    call conclude(int(c_reducer_create(self%comm, 0, self%owned, 0, op, self%handle)), ierror)
  end subroutine reducer_create_range

  !> `array` may be an expression, or any section: it is copied then.
  subroutine reducer_reduce(self, array, result, ierror)
    class(isohalo_reducer), intent(in) :: self
    real(c_double), dimension(..), contiguous, intent(in) :: array
    real(c_double), intent(out) :: result
    integer, intent(out), optional :: ierror
    integer :: code
    code = c_reducer_start(self%comm, self%handle, array, self%dims, self%owned, self%width)
    if (code == MPI_SUCCESS) code = c_reducer_wait(self%handle, result)
    call conclude(code, ierror)
  end subroutine reducer_reduce

  subroutine reducer_start(self, array, ierror)
    class(isohalo_reducer), intent(in) :: self
    real(c_double), dimension(..), contiguous, intent(in) :: array
    integer, intent(out), optional :: ierror
    call conclude(int(c_reducer_start(self%comm, self%handle, array, self%dims, self%owned, self%width)), ierror)
  end subroutine reducer_start

  !> Local.
  subroutine reducer_wait(self, result, ierror)
    class(isohalo_reducer), intent(in) :: self
    real(c_double), intent(out) :: result
    integer, intent(out), optional :: ierror
    call conclude(int(c_reducer_wait(self%handle, result)), ierror)
  end subroutine reducer_wait

  !> Completes a reduction in flight.
  subroutine reducer_free(self, ierror)
    class(isohalo_reducer), intent(inout) :: self
    integer, intent(out), optional :: ierror
    call conclude(int(c_reducer_free(self%handle)), ierror)
  end subroutine reducer_free
end module isohalo
