"""One training step of ResNet-34 and ResNet-50 against PyTorch in float64: loss, all gradients, batch norm's running
statistics, the updated weights. Both sides start from the same file; the views (flips and grays alone) are recomputed here
from the random words that docs/views.md writes down. Without PyTorch and torchvision it is skipped and says so."""

from program import *

SEED, BATCH, TEMPERATURE, RATE = 3, 20, 0.5, 0.05


def philox(counter, key):
    """Philox4x32-10 (Salmon et al., SC11)."""
    counter, key = list(counter), list(key)
    for _ in range(10):
        p0, p1 = 0xD2511F53 * counter[0], 0xCD9E8D57 * counter[2]
        counter = [(p1 >> 32) ^ counter[1] ^ key[0], p1 & 0xFFFFFFFF, (p0 >> 32) ^ counter[3] ^ key[1], p0 & 0xFFFFFFFF]
        key = [(key[0] + 0x9E3779B9) & 0xFFFFFFFF, (key[1] + 0xBB67AE85) & 0xFFFFFFFF]
    return counter


def views_of(images, numpy):
    """[2B, 3, 32, 32]: view 1 of all images, then view 2; images [B, 3, 32, 32] in [0, 1]."""
    key = philox((3, 0, 0, 0), (SEED, 0))[:2]  # purpose 3: views
    made = []
    for view in range(2):
        for sample, image in enumerate(images):
            uniform = lambda word: (philox((word // 4, view, sample, 0), key)[word % 4] >> 8) * 2.0**-24
            if uniform(0) < 0.5:
                image = image[:, :, ::-1]
            if uniform(7) < 0.5:
                gray = numpy.float32(0.2989) * image[0] + numpy.float32(0.587) * image[1] + numpy.float32(0.114) * image[2]
                image = numpy.stack([gray] * 3)
            made.append((image - numpy.float32(0.5)) / numpy.float32(0.25))
    return numpy.stack(made)


def make_network(torch, torchvision, depth, stem):
    """Encoder and projector with names as in this program's files; batch norm's scales and shifts are not 1 and 0."""
    torch.manual_seed(depth)
    network = getattr(torchvision.models, f"resnet{depth}")()
    if stem == "cifar":
        network.conv1 = torch.nn.Conv2d(3, 64, kernel_size=3, stride=1, padding=1, bias=False)
        network.maxpool = torch.nn.Identity()
    columns = network.fc.in_features
    network.fc = torch.nn.Identity()
    network.projector = torch.nn.Sequential(torch.nn.Linear(columns, 64, bias=False), torch.nn.BatchNorm1d(64),
                                            torch.nn.ReLU(), torch.nn.Linear(64, 32))
    for module in network.modules():
        if isinstance(module, (torch.nn.BatchNorm1d, torch.nn.BatchNorm2d)):
            torch.nn.init.uniform_(module.weight, 0.5, 1.5)
            torch.nn.init.uniform_(module.bias, -0.2, 0.2)
    return network.train()


def forward(torch, network, views):
    e = torch.nn.functional.normalize(network.projector(network(views)), dim=1)
    rows = e.shape[0]
    logits = (e @ e.T / TEMPERATURE).masked_fill(torch.eye(rows, dtype=torch.bool), float("-inf"))
    return torch.nn.functional.cross_entropy(logits, (torch.arange(rows) + rows // 2) % rows)


def torch_loss(torch, network, views):
    with torch.no_grad():
        return forward(torch, network, views).item()


def torch_step(torch, network, views):
    """Loss, and the gradients by name; running statistics are updated in the network."""
    network.zero_grad()
    loss = forward(torch, network, views)
    loss.backward()
    return loss.item(), {name: p.grad.double().clone() for name, p in network.named_parameters()}


def compare(folder, depth, stem):
    import copy

    import numpy
    import torch
    import torchvision
    from safetensors.torch import load_file, save_file

    name = f"ResNet-{depth}, stem {stem}"
    data = folder / "data"
    if not data.exists():
        write_cifar(data, records=BATCH // 5)
    records = b"".join((data / f"data_batch_{i}.bin").read_bytes() for i in range(1, 6))
    images = numpy.frombuffer(records, numpy.uint8).reshape(BATCH, CIFAR_RECORD)[:, 1:].reshape(BATCH, 3, 32, 32)
    views = torch.from_numpy(views_of(images.astype(numpy.float32) / numpy.float32(255), numpy))

    network = make_network(torch, torchvision, depth, stem)
    start = folder / f"start{depth}.safetensors"
    save_file({k: v for k, v in network.state_dict().items()}, start)
    exact_network = copy.deepcopy(network).double()
    start_network = copy.deepcopy(exact_network)
    loss, exact = torch_step(torch, exact_network, views.double())
    single_loss, single = torch_step(torch, network, views)

    settings = {"run.seed": SEED, "data.format": "cifar10", "data.path": data, "data.image_size": 32,
                "views.crop_scale": "[1,1]", "views.crop_ratio": "[1,1]", "views.flip": 0.5, "views.grayscale": 0.5,
                "views.jitter.probability": 0, "views.blur.probability": 0,
                "views.normalize.mean": "[0.5,0.5,0.5]", "views.normalize.std": "[0.25,0.25,0.25]",
                "model.encoder.depth": depth, "model.encoder.width": 64, "model.encoder.stem": stem,
                "model.projector.hidden": 64, "model.projector.output": 32, "model.init_from": start,
                "loss.temperature": TEMPERATURE, "optimizer.type": "sgd", "optimizer.momentum": 0.9,
                "optimizer.weight_decay": 0, "optimizer.base_lr": RATE, "optimizer.lr_scaling": "none",
                "train.global_batch": BATCH, "train.shards": 4, "train.max_steps": 1, "evaluate.knn.every_epochs": 0}
    made = run(2, settings, folder / f"run{depth}", limit_s=200)
    check(made.code == 0, f"{name} takes a step on two ranks", made)
    ours = {key: value.double() for key, value in load_file(made.checkpoints[-1]).items()}

    # The program resamples each view in float32, also where the crop is the whole image: pixels differ by some 1e-7,
    # and a deep network with batch norm over 40 values makes more of it. How much more, PyTorch in float64 says.
    moved = [torch_loss(torch, start_network, views.double() + 1e-6 * (2 * torch.rand(views.shape, dtype=torch.float64) - 1)) for _ in range(5)]
    error, measure = abs(float(made.losses[1]) - loss) / loss, max(abs(other - loss) / loss for other in moved)
    check(error < 2 * measure, f"{name}: the loss is PyTorch's in float64 to {error:.1e} (pixels moved by 1e-6 there: {measure:.1e}; "
          f"PyTorch in float32: {abs(single_loss - loss) / loss:.1e})")

    # A rounding error may turn a ReLU, which moves a gradient by far more than itself: so the measure is what PyTorch's
    # own float32 makes of the same step. After one step SGD's momentum is the gradient.
    relative = lambda got, want: ((got - want).norm() / want.norm()).item()
    of_ours = {key: relative(ours["optimizer.momentum." + key], want) for key, want in exact.items()}
    of_single = {key: relative(single[key], want) for key, want in exact.items()}
    median = numpy.median(list(of_ours.values()))
    measure = numpy.median(list(of_single.values()))
    worst = max(of_ours, key=of_ours.get)
    check(median < 0.02 and median < 4 * measure + 1e-6,
          f"{name}: {len(exact)} gradients, median error {median:.1e} (PyTorch in float32: {measure:.1e})")
    check(of_ours[worst] < 4 * max(of_single.values()) + 1e-4,
          f"{name}: largest error {of_ours[worst]:.1e}, of {worst} (PyTorch in float32: {max(of_single.values()):.1e})")

    buffers = {k: v for k, v in exact_network.named_buffers() if "running" in k}
    error = max(relative(ours[key], want) for key, want in buffers.items())
    check(error < 1e-5, f"{name}: {len(buffers)} running means and variances after the step to {error:.1e}")
    error = max(((ours[key] - (p.detach() - RATE * ours["optimizer.momentum." + key])).abs().max() / p.detach().abs().max()).item()
                for key, p in exact_network.named_parameters())
    check(error < 1e-6, f"{name}: the updated weights are the old ones less rate times gradient, to {error:.1e}")


try:
    import numpy  # noqa: F401
    import safetensors  # noqa: F401
    import torch  # noqa: F401
    import torchvision  # noqa: F401
except ImportError as missing:
    print(f"SKIPPED: a step against PyTorch: {missing}")
    sys.exit(77)

with Folder() as folder:
    compare(folder, 34, "imagenet")
    compare(folder, 50, "imagenet")
