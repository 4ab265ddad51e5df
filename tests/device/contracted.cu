// A product that is added to: what ptx.py must find where contraction is not forbidden.
__global__ void PointUpdate(const double* a, const float* b, double* x, float* y) {
  x[threadIdx.x] = a[0] * x[threadIdx.x] + a[1];
  y[threadIdx.x] = b[0] * y[threadIdx.x] - b[1];
}
