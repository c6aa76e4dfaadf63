-- A breakdown by referrer reads some granules here and there of nearly all columns: in small blocks less is unpacked in vain.
ALTER TABLE settled MODIFY SETTING min_compress_block_size = 2048, max_compress_block_size = 8192
