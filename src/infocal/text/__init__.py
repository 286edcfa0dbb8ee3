"""From text to character spans to ids: segmentation, vocabulary, pretrained vectors."""
