/* Operators that ExecuTorch's exporter writes and no build of this one runs: why, or what in a
 * model makes them and what to write instead. */
#include "graph/op.h"

#define COMPLEX                                                                                    \
  "complex numbers have no elements here: write the model with pairs of real ones, or leave this " \
  "part to the application"
#define RANDOM                                                                                     \
  "random numbers would differ from call to call and from device to device: draw them in the "     \
  "application and give them to the method as an input"
/* What makes it, and a way round. */
#define LACKS(WHAT, INSTEAD) "this build has no such operator; " WHAT " makes it; instead: " INSTEAD
#define IN_CODE "leave this part to the application"

const struct op ops_refused[] = {
    {"aten::_fft_r2c.out", .refused = COMPLEX},
    {"aten::_fft_c2r.out", .refused = COMPLEX},
    {"aten::_conj_physical.out", .refused = COMPLEX},
    {"aten::polar.out", .refused = COMPLEX},
    {"aten::view_as_complex_copy.out", .refused = COMPLEX},
    {"aten::view_as_real_copy.out", .refused = COMPLEX},
    {"aten::exponential.out", .refused = RANDOM},
    {"aten::multinomial.out", .refused = RANDOM},
    {"aten::normal.Tensor_float_out", .refused = RANDOM},
    {"aten::rand.out", .refused = RANDOM},
    {"aten::rand_like.out", .refused = RANDOM},
    {"aten::randint.low_out", .refused = RANDOM},
    {"aten::randn.out", .refused = RANDOM},
    {"aten::randperm.out", .refused = RANDOM},
    {"aten::_embedding_bag.out",
     .refused = LACKS("nn.EmbeddingBag", "nn.Embedding and a sum or mean over the bag")},
    {"aten::_embedding_bag_forward_only.out",
     .refused = LACKS("nn.EmbeddingBag", "nn.Embedding and a sum or mean over the bag")},
    {"aten::_trilinear.out",
     .refused = LACKS("nn.Bilinear", "torch.einsum over its weight, and its bias")},
    {"aten::_unique2.out", .refused = LACKS("torch.unique", IN_CODE)},
    {"aten::addmv.out", .refused = LACKS("torch.addmv", "a product of matrices, and a sum")},
    {"aten::bucketize.Tensor_out",
     .refused = LACKS("torch.bucketize", "a sum of comparisons with the bounds")},
    {"aten::copysign.out", .refused = LACKS("torch.copysign", "x.abs() * y.sign()")},
    {"aten::cummax.out", .refused = LACKS("torch.cummax", IN_CODE)},
    {"aten::cummin.out", .refused = LACKS("torch.cummin", IN_CODE)},
    {"aten::cumprod.out",
     .refused = LACKS("torch.cumprod or torch.vander", "exp of the cumsum of logarithms")},
    {"aten::digamma.out", .refused = LACKS("torch.digamma", IN_CODE)},
    {"aten::dist.out", .refused = LACKS("torch.dist", "(x - y).norm()")},
    {"aten::erfc.out", .refused = LACKS("torch.erfc", "1 - torch.erf(x)")},
    {"aten::erfinv.out", .refused = LACKS("torch.erfinv", IN_CODE)},
    {"aten::fmax.out", .refused = LACKS("torch.fmax", "torch.maximum where no NaN comes")},
    {"aten::fmin.out", .refused = LACKS("torch.fmin", "torch.minimum where no NaN comes")},
    {"aten::fractional_max_pool2d.output",
     .refused = LACKS("nn.FractionalMaxPool2d", "nn.MaxPool2d")},
    {"aten::gcd.out", .refused = LACKS("torch.gcd", IN_CODE)},
    {"aten::grid_sampler_3d.out",
     .refused = LACKS("F.grid_sample of volumes", "F.grid_sample of pictures")},
    {"aten::histc.out", .refused = LACKS("torch.histc", "sums of comparisons with the bounds")},
    {"aten::hypot.out", .refused = LACKS("torch.hypot", "torch.sqrt(x * x + y * y)")},
    {"aten::i0.out", .refused = LACKS("torch.i0 or a Kaiser window", "a buffer with its values")},
    {"aten::index_reduce.out",
     .refused = LACKS("Tensor.index_reduce", "Tensor.index_add, if it is a sum")},
    {"aten::kthvalue.values", .refused = LACKS("torch.kthvalue", "the last of torch.topk")},
    {"aten::ldexp.out", .refused = LACKS("torch.ldexp", "x * torch.exp2(y)")},
    {"aten::lgamma.out", .refused = LACKS("torch.lgamma", IN_CODE)},
    {"aten::linalg_qr.out", .refused = LACKS("torch.linalg.qr", IN_CODE)},
    {"aten::_linalg_det.result", .refused = LACKS("torch.det", IN_CODE)},
    {"aten::_linalg_svd.U", .refused = LACKS("torch.linalg.svd", IN_CODE)},
    {"aten::logcumsumexp.out",
     .refused = LACKS("torch.logcumsumexp", "the logarithm of a cumsum of exponentials")},
    {"aten::median.out",
     .refused = LACKS("torch.median", "the last of torch.topk of half of them")},
    {"aten::median.dim_values",
     .refused = LACKS("torch.median along a dim", "the last of torch.topk of half of them")},
    {"aten::mode.values", .refused = LACKS("torch.mode", IN_CODE)},
    {"aten::nextafter.out", .refused = LACKS("torch.nextafter", IN_CODE)},
    {"aten::put.out", .refused = LACKS("Tensor.put", "an assignment by index to the flat tensor")},
    {"aten::scatter_reduce.two_out",
     .refused = LACKS("Tensor.scatter_reduce", "Tensor.scatter_add, if it is a sum")},
    {"aten::searchsorted.Tensor_out",
     .refused = LACKS("torch.searchsorted", "a sum of comparisons with the bounds")},
    {"aten::signbit.out", .refused = LACKS("torch.signbit", "x < 0")},
    {"aten::tril_indices.out", .refused = LACKS("torch.tril_indices", "a buffer with its values")},
    {0},
};
